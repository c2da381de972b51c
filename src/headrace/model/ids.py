"""Job ids: UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import os
import threading
import time
import uuid

from headrace.errors import InvalidInput

_lock = threading.Lock()
_last = 0
_random = b""
_used = 0


def new_id() -> str:
    """Make a UUIDv7. Ids made in one process strictly increase."""
    global _last, _random, _used  # noqa: PLW0603 - one counter per process is the point
    # 48 bits of milliseconds, then 12 bits of finer time that double as a counter (RFC 9562, 6.2).
    stamp = time.time_ns() * 4096 // 1_000_000
    with _lock:
        if stamp <= _last:
            stamp = _last + 1
        _last = stamp
        if _used == len(_random):
            # A call to the system for each id would cost more than all the rest.
            _random, _used = os.urandom(4096), 0
        tail = _random[_used : _used + 8]
        _used += 8
    head, rest = f"{stamp:015x}", tail.hex()
    return f"{head[:8]}-{head[8:12]}-7{head[12:]}-{'89ab'[tail[0] & 3]}{rest[1:4]}-{rest[4:]}"


def first_id(moment: float) -> str:
    """The lowest id that could be made in the millisecond of a moment, in epoch seconds."""
    head = f"{max(int(moment * 1_000), 0):012x}"
    return f"{head[:8]}-{head[8:]}-7000-8000-000000000000"


def new_ids(count: int) -> list[str]:
    """Make several at once, which strictly increase and go before all that are made later. They
    share their random part: together they cost a third of what they would one by one.
    """
    global _last  # noqa: PLW0603 - as above
    stamp = time.time_ns() * 4096 // 1_000_000
    with _lock:
        stamp = max(stamp, _last + 1)
        _last = stamp + count - 1
    tail = os.urandom(8)
    rest = tail.hex()
    end = f"{'89ab'[tail[0] & 3]}{rest[1:4]}-{rest[4:]}"
    heads = [f"{each:015x}" for each in range(stamp, stamp + count)]
    return [f"{head[:8]}-{head[8:12]}-7{head[12:]}-{end}" for head in heads]


def nth_id(base: str, index: int) -> str:
    """The id of the `index`-th of many that are made together, from one `base` id. In their order
    they strictly increase; those of different bases differ.
    """
    # The finest step of time is a quarter of a microsecond: a million ids are a quarter second.
    head, rest = base.replace("-", ""), base[19:]
    stamp = int(head[:12] + head[13:16], 16) + index
    text = f"{stamp:015x}"
    return f"{text[:8]}-{text[8:12]}-7{text[12:]}-{rest}"


def _forget() -> None:
    """A forked child must not go on with its parent's random bytes, nor with a lock it cannot
    open.
    """
    global _lock, _random, _used
    _lock, _random, _used = threading.Lock(), b"", 0


os.register_at_fork(after_in_child=_forget)


def parse_id(text: str) -> str:
    """Return the canonical form of a job id, or say what is wrong with it."""
    try:
        return str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            f"job id {text!r} is not a UUID; copy it whole from `headrace jobs list`"
        ) from None
