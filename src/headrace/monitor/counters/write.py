"""What a worker adds to the counters of all workers."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.errors import RecordConflict
from headrace.model.views import Record
from headrace.monitor.counters.codec import CUMULATIVE, counted, read_counted
from headrace.monitor.counters.total import KIND, Pair, add_to_total, is_full, register
from headrace.telemetry import OTHERS, Histogram, TaskCounters, Telemetry

# A record with many tasks in queues, of which most had nothing lately, is added to the total.
LARGE = 100
LARGE_AFTER = 300.0
OTHER: Pair = (OTHERS, OTHERS)


class CounterWriter:
    """Writes what this worker has counted and is not in the total yet, as one record.

    Nothing is counted twice: a record is written by its writer alone, and begun anew after it was
    added to the total.
    """

    def __init__(
        self, *, engine: Records, telemetry: Telemetry, worker: Callable[[], str], clock: Clock
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._worker = worker
        self._clock = clock
        # The worker's counters as they were when they were last taken.
        self._taken = Telemetry()
        # What is not in the total.
        self._pending = Telemetry()
        self._named: set[Pair] = {OTHER}
        self._unnamed: set[Pair] = set()
        self._record: Record | None = None
        # What was written last, whether or not it is known to be stored.
        self._sent = b""
        self._key = ""
        self._since = 0.0
        self._changed = False

    async def write(self) -> None:
        """Store what was counted, if something was done: polling and renewals are not enough."""
        await self._register()
        self._take()
        if not self._changed:
            return
        body = msgspec.json.encode(counted(self._pending))
        if not self._key:
            self._key = f"{self._worker()}~{secrets.token_hex(6)}"
            self._since = self._clock.now()
        version = 0 if self._record is None else self._record.version
        self._sent, before = body, self._sent
        try:
            self._record = await self._engine.record_put(KIND, self._key, body, version=version)
        except RecordConflict:
            await self._look_again(before)
            return
        self._changed = False
        if len(self._pending.tasks) > LARGE and self._clock.now() - self._since > LARGE_AFTER:
            await self._add()

    async def finish(self) -> None:
        """Add everything to the total: the worker stops."""
        # Also if nothing is new: a record that others have added must not be added again.
        self._changed |= bool(self._pending.tasks) or self._record is not None
        await self.write()
        if self._changed:
            await self.write()  # it was refused, and another record begun
        await self._add()

    def fold(self, key: Pair) -> None:
        """Follow the worker's counters, of which these are about to be counted among the others."""
        counters = self._telemetry.tasks.get(key)
        if counters is not None:
            self._take_pair(key, counters)
            self._taken.fold(key)
            self._unnamed.discard(key)

    async def _add(self) -> None:
        record = self._record
        if record is not None:
            # Before: whether it is added or left for others, it must not be written again.
            self._begin_anew()
            await add_to_total(self._engine, record, self._clock.now())

    def _begin_anew(self) -> None:
        """Begin another record: what was written is in the total, or will be."""
        written = read_counted(self._sent)
        if written is not None:
            self._pending = since(self._pending, written.telemetry)
        self._record, self._sent, self._key = None, b"", ""

    async def _look_again(self, before: bytes) -> None:
        """Find out why a record is not as it was left."""
        found = await self._engine.record_get(KIND, self._key)
        body = None if found is None else read_counted(found.body)
        if found is None or body is None:
            # Somebody has added it: what was stored, not what has just been refused.
            self._sent = before
            self._begin_anew()
        elif body.closed:
            self._sent = found.body
            self._begin_anew()
        else:
            # A write of ours that seemed to fail did not.
            self._record, self._sent = found, found.body

    async def _register(self) -> None:
        known = self._named | self._unnamed
        new = [key for key in list(self._telemetry.tasks) if key not in known]
        if new:
            if not is_full(self._named):
                self._named = {OTHER, *await register(self._engine, new)}
            self._unnamed.update(key for key in new if key not in self._named)

    def _take(self) -> None:
        """Add what was counted since the last time to what is pending."""
        now, taken, pending = self._telemetry, self._taken, self._pending
        for name in CUMULATIVE:
            more = getattr(now, name) - getattr(taken, name)
            setattr(pending, name, getattr(pending, name) + more)
            setattr(taken, name, getattr(now, name))
            self._changed |= more > 0 and name != "renewals"
        exchange = now.exchange_seconds
        pending.exchange_seconds.add(exchange.since(taken.exchange_seconds))
        taken.exchange_seconds = Histogram(list(exchange.counts), exchange.total)
        for key, counters in list(now.tasks.items()):
            # Those that were seen for the first time just now are registered before they count.
            if key in self._named or key in self._unnamed:
                self._take_pair(key, counters)

    def _take_pair(self, key: Pair, counters: TaskCounters) -> None:
        earlier = self._taken.of(*key)
        if counters.attempts != earlier.attempts:
            more = counters.since(earlier)
            self._pending.of(*(key if key in self._named else OTHER)).add(more)
            earlier.add(more)
            self._changed = True


def since(now: Telemetry, earlier: Telemetry) -> Telemetry:
    """Return what was counted since an earlier state; tasks that had nothing are left out."""
    exchange = now.exchange_seconds.since(earlier.exchange_seconds)
    found = Telemetry(exchange_seconds=exchange)
    for name in CUMULATIVE:
        setattr(found, name, getattr(now, name) - getattr(earlier, name))
    for key, counters in now.tasks.items():
        before = earlier.tasks.get(key)
        more = counters if before is None else counters.since(before)
        if more.attempts:
            found.tasks[key] = more
    return found
