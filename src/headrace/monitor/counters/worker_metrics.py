"""Counters of workers, stored where a server in another process can read them.

Every worker runs `Publish` as one of its loops, so any server has the metrics of all workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.errors import EngineUnavailable, HeadraceError, RecordConflict
from headrace.loops.loop import Loop, around
from headrace.model.views import Record
from headrace.monitor.counters.codec import COUNTERS, counted, counted_task, decode_counted
from headrace.monitor.counters.total import add_left_behind
from headrace.monitor.counters.write import CounterWriter
from headrace.monitor.series.write import MinuteWriter
from headrace.telemetry import OTHERS, Telemetry

KIND = "telemetry"
PAUSE = 2.0
IDLE_PAUSE = 60.0
FORGET_AFTER = timedelta(minutes=10)
TIDY_EVERY = 300.0
TIDY_STEP = 50
PATIENCE = 3.0
# A task in a queue that had nothing for so long is counted among the others, and so are those
# beyond so many that had nothing for longest: what is written every few seconds has to stay small.
FOLD_AFTER = 3_600.0
MOST_PAIRS = 1_000
# So many are made ready for writing before the event loop may do something else.
PIECE = 100


class Publish(Loop):
    """Stores a worker's counters every few seconds, and deletes them when it stops; what it did in
    each minute, and what it adds to the counters of all workers, stay.

    An idle worker writes once a minute, and one that has done nothing never.
    """

    name = "telemetry"
    stops_last = True

    def __init__(
        self, *, engine: Records, telemetry: Telemetry, worker: Callable[[], str], clock: Clock
    ) -> None:
        super().__init__()
        self._engine = engine
        self._telemetry = telemetry
        self._worker = worker
        self._clock = clock
        self._written: str | None = None
        self._work: object = _work(Telemetry())
        self._written_at = clock.now()
        self._tidy_at = self._written_at + around(TIDY_EVERY)
        self._minutes = MinuteWriter(engine=engine, telemetry=telemetry, worker=worker, clock=clock)
        self._counters = CounterWriter(
            engine=engine, telemetry=telemetry, worker=worker, clock=clock
        )
        self._pairs = Pairs(telemetry, self._fold)

    async def tick(self) -> float:
        """Store the counters, if they have changed."""
        now = self._clock.now()
        if abs(self._tidy_at - now) > 2 * TIDY_EVERY or now >= self._tidy_at:
            self._tidy_at = now + around(TIDY_EVERY)
            with contextlib.suppress(EngineUnavailable):
                await self._tidy()
        self._pairs.fold(now)
        with contextlib.suppress(EngineUnavailable):
            await self._minutes.write(now)
        with contextlib.suppress(EngineUnavailable, RecordConflict):
            await self._counters.write()
        work = _work(self._telemetry)
        idle = work == self._work
        if idle and (self._written is None or now - self._written_at < IDLE_PAUSE):
            return PAUSE
        # Others report that the engine is away.
        with contextlib.suppress(EngineUnavailable):
            name = self._worker()
            if self._written not in (None, name):
                await self._remove()
            await self._engine.record_put(KIND, name, await self._pairs.encode())
            self._written, self._work, self._written_at = name, work, now
        return PAUSE

    async def stop(self, patience: float = PATIENCE) -> None:
        """Store the last minute and delete the counters, if the engine is there."""
        await super().stop(patience)
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._minutes.finish()
                await self._remove()
                await self._counters.finish()

    def _fold(self, key: tuple[str, str]) -> None:
        self._minutes.fold(key)
        self._counters.fold(key)

    async def _remove(self) -> None:
        if self._written is not None:
            await self._engine.record_delete(KIND, self._written)
            self._written = None

    async def _tidy(self) -> None:
        """Delete the counters of workers that were killed."""
        oldest = self._clock.utcnow() - FORGET_AFTER
        after = ""
        while records := await self._engine.record_list(KIND, after=after, limit=TIDY_STEP):
            after = records[-1].key
            for record in records:
                if record.updated_at < oldest:
                    await self._engine.record_delete(KIND, record.key)
        await add_left_behind(self._engine, oldest, self._clock.now())


class Pairs:
    """Encoded counters by task and queue: few, each encoded again only if it has changed.

    Runs on the loop that counts, and yields only between two of them.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        on_fold: Callable[[tuple[str, str]], None] = lambda _: None,
    ) -> None:
        self._telemetry = telemetry
        self._on_fold = on_fold
        # By task and queue: how many attempts there were at the last fold, and since when.
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        # The same, with the encoded counters.
        self._encoded: dict[tuple[str, str], tuple[int, msgspec.Raw]] = {}

    def fold(self, now: float) -> None:
        """Add those to OTHERS that were idle for long, or for longest if there are many."""
        seen, tasks = self._seen, self._telemetry.tasks
        for key, counters in tasks.items():
            attempts = counters.attempts
            before = seen.get(key)
            if before is None or before[0] != attempts or before[1] > now:
                seen[key] = (attempts, now)
        idle = sorted((since, key) for key, (_, since) in seen.items() if OTHERS not in key)
        excess = len(idle) - MOST_PAIRS
        for number, (since, key) in enumerate(idle):
            if number >= excess and now - since <= FOLD_AFTER:
                break
            self._on_fold(key)
            self._telemetry.fold(key)
            del seen[key]
            self._encoded.pop(key, None)

    async def encode(self) -> bytes:
        """Encode the counters in pieces, so that jobs go on meanwhile."""
        tasks: list[msgspec.Raw] = []
        made = 0
        for key, counters in list(self._telemetry.tasks.items()):
            attempts = counters.attempts
            attempts_before, encoded = self._encoded.get(key, (-1, msgspec.Raw()))
            if attempts != attempts_before:
                encoded = msgspec.Raw(msgspec.json.encode(counted_task(counters)))
                self._encoded[key] = (attempts, encoded)
                made += 1
                if made % PIECE == 0:
                    await asyncio.sleep(0)
            tasks.append(encoded)
        return msgspec.json.encode(counted(self._telemetry, tasks))


def _work(telemetry: Telemetry) -> object:
    """Return what changes only when something was done; polling does not count."""
    return telemetry.outcomes(), [
        getattr(telemetry, name) for name in COUNTERS if name != "renewals"
    ]


def encode(telemetry: Telemetry) -> bytes:
    """Encode the counters at once."""
    tasks = [counted_task(each) for each in list(telemetry.tasks.values())]
    return msgspec.json.encode(counted(telemetry, tasks))


def decode(records: Sequence[Record]) -> dict[str, Telemetry]:
    """Return the counters by worker. Records in the form of another version are left out."""
    found = {}
    for record in records:
        telemetry = decode_counted(record.body)
        if telemetry is not None:
            found[record.key] = telemetry
    return found
