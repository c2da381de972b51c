"""Reads of the store that many share: made once for all who ask, and kept for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# A read that takes long is kept for so many times as long, so that looking is never most of the
# work of a store.
TIMES = 20.0
MOST = 64


@dataclass(slots=True)
class _CachedRead(Generic[T]):
    """One read: its result is fresh until `until`, which is set when it has succeeded."""

    task: asyncio.Task[T]
    before: _CachedRead[T] | None = None
    until: float | None = None

    def late(self, now: float) -> float:
        """Return for how long its result has not been fresh: below zero while it is, or is on its
        way. One that failed never was.
        """
        if not self.task.done():
            return float("-inf")
        # Asking for the error keeps asyncio from complaining of it.
        failed = self.task.cancelled() or self.task.exception() is not None
        if failed or self.until is None:
            return float("inf")
        return now - self.until


class CachedReads(Generic[T]):
    """Results by key, each at most `seconds` old, or `times` as long as it took to read. One that
    was fresh up to `meanwhile` seconds ago is returned while it is read anew, so that nobody waits.
    """

    def __init__(
        self,
        seconds: float,
        *,
        meanwhile: float = 0.0,
        times: float | None = None,
        most: int = MOST,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`times` is `TIMES` if it is left out. `most` keys are kept. `clock` returns seconds, of
        the machine if it is left out.
        """
        self._seconds = seconds
        self._times = times
        self._meanwhile = meanwhile
        self._most = most
        self._clock = clock or _seconds
        self._kept: dict[Hashable, _CachedRead[T]] = {}

    def forget(self) -> None:
        """Read anew for the next who asks: something was changed here."""
        # A read that is under way may be from before: only those who wait for it get it.
        self._kept.clear()

    async def get(
        self,
        key: Hashable,
        read: Callable[[], Coroutine[Any, Any, T]],
        again: Callable[[], Coroutine[Any, Any, T]] | None = None,
    ) -> T:
        """Return what was read lately, or read it. Concurrent callers share a read. `again` reads
        it anew while there is something to show: it may take its time.
        """
        kept, now = self._kept.pop(key, None), self._clock()
        if kept is None or kept.late(now) >= 0:
            before = kept if kept is not None and kept.late(now) < self._meanwhile else None
            if before is not None:
                before.before = None  # or each would keep all that were before it
            kept = self._begin(read if before is None else again or read, before)
        self._kept[key] = kept
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        if kept.before is not None:
            if not kept.task.done() and kept.before.late(now) < self._meanwhile:
                return kept.before.task.result()
            kept.before = None
        # A caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(kept.task)

    def _begin(
        self, read: Callable[[], Coroutine[Any, Any, T]], before: _CachedRead[T] | None
    ) -> _CachedRead[T]:
        async def timed() -> T:
            began = self._clock()
            result = await read()
            times = TIMES if self._times is None else self._times
            kept.until = began + max(self._seconds, times * (self._clock() - began))
            return result

        kept = _CachedRead(asyncio.create_task(timed(), name="headrace read"), before)
        # Nobody may wait for one that is read anew: asking for its error is enough.
        kept.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return kept


def _seconds() -> float:
    return time.monotonic()
