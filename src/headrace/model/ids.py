"""Job ids: UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import os
import threading
import time
import uuid

from headrace.errors import InvalidInput

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Make a UUIDv7. Ids made in one process strictly increase."""
    global _last  # noqa: PLW0603 - one counter per process is the point
    # 48 bits of milliseconds, then 12 bits of finer time that double as a counter (RFC 9562, 6.2).
    nanoseconds = time.time_ns()
    stamp = (nanoseconds // 1_000_000) << 12 | (nanoseconds % 1_000_000) * 4096 // 1_000_000
    with _lock:
        if stamp <= _last:
            stamp = _last + 1
        _last = stamp
    text = f"{stamp >> 12:012x}7{stamp & 0xFFF:03x}"
    tail = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    rest = f"{tail:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:]}-{rest[:4]}-{rest[4:]}"


def parse_id(text: str) -> str:
    """Return the canonical form of a job id, or say what is wrong with it."""
    try:
        return str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            f"job id {text!r} is not a UUID; copy it whole from `headrace jobs list`"
        ) from None
