"""Stable names for entries without one: enclosing stage plus occurrence number.

They are the same in every attempt, as long as the handler stores its entries in the same order.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar

# The stage that the caller is in, followed by a slash. Threads inherit it.
CURRENT_STAGE: ContextVar[str] = ContextVar("headrace_stage", default="")


class EntryNames:
    """Counts the entries of one attempt that have no name of their own."""

    __slots__ = ("_guard", "_seen")

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._guard = threading.Lock()

    def next(self, kind: str, name: str | None) -> str:
        """Return the name to store an entry by: its own or a number, then the count of repeats."""
        entry_name = CURRENT_STAGE.get() + (name or "")
        with self._guard:
            self._seen[kind, entry_name] += 1
            count = self._seen[kind, entry_name]
        return entry_name if name and count == 1 else f"{entry_name}#{count}"
