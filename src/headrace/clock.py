"""The clock that everything reads, and that tests can advance.

Engines on a server take the server's time, so that machines need not agree; they add `offset`,
which is zero except in tests. One clock serves an App and all its loops.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """Wall-clock time, plus an offset that only tests change."""

    def __init__(self) -> None:
        self.offset: float = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.offset

    def utcnow(self) -> datetime:
        """The same moment as an aware datetime."""
        return datetime.fromtimestamp(self.now(), UTC)

    def advance(self, seconds: float) -> None:
        """Move time forward. For tests."""
        if seconds < 0:
            raise ValueError(f"time only moves forward, got {seconds}")
        self.offset += seconds
