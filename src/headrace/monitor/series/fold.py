"""Fold minutes into hours after a day, hours into days after two weeks, and delete old days.

Any number of processes may do so at once, and be killed at any point. What always holds: **a record
that is in the store has been added to a longer one if, and only if, that one names it in
`contains`.** So that it holds,

- a record is added and named by one write, guarded by the version that was read before the records
  were listed: of two that fold the same, one is refused;
- what is named is deleted before it is named no longer, and that again is a guarded write;
- minutes are never changed, and hours not any more when their turn has come.

Readers read minutes, then hours, then days, and leave out what is named. A name stays for longer
than it takes to read, so that they never see a record and its sum without the name.
"""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.errors import RecordConflict
from headrace.loops.loop import Loop, around
from headrace.model.views import Record
from headrace.monitor.series.records import (
    DAY,
    HOUR,
    MINUTE,
    Counts,
    SeriesStep,
    decode,
    label,
    moment_of,
)

BATCH = 500
PAUSE = 600.0
STEP_PAUSE = 0.1
# Names stay for so long; more than it takes to read.
NAMED_FOR = 60.0
# Near the end of its time an hour is left alone, so that it is not changed while it is folded.
REST = 3_600.0


class FoldSeries(Loop):
    """Keeps the number of records bounded, however long series are kept."""

    name = "series"

    def __init__(self, *, engine: Records, clock: Clock) -> None:
        super().__init__()
        self._engine = engine
        self._clock = clock
        # Past records that this version cannot read.
        self._after = {MINUTE.kind: "", HOUR.kind: ""}
        # Hours and days that name what they contain.
        self._naming: set[tuple[str, str]] = set()

    async def tick(self) -> float:
        """Do one step's worth; go on soon while there is more."""
        try:
            for step in (MINUTE, HOUR):
                if await self._fold(step):
                    return STEP_PAUSE
            for kind, key in list(self._naming):
                await self._settle_again(kind, key)
        except RecordConflict:
            return around(NAMED_FOR)  # another process does the same
        await self._expire()
        return around(NAMED_FOR if self._naming else PAUSE)

    async def _fold(self, step: SeriesStep) -> bool:
        """Add the oldest records of a step to the longer one that they belong to. Return whether
        there may be more to do at once.
        """
        after = self._after[step.kind]
        oldest = await self._engine.record_list(step.kind, after=after, limit=1)
        if not oldest:
            self._after[step.kind] = ""
            return False
        target = target_of(step, oldest[0].key, self._clock.now())
        if target is None:
            return False
        longer, name = target
        record = await self._engine.record_get(longer.kind, name)
        if record is not None:
            record = await self._settle(record)
            if record is None:
                self._naming.add((longer.kind, name))
                return False
        counts = Counts() if record is None else decode(record.body)
        # Listed after the longer record was read: what it has contained is gone by now.
        listed = await self._engine.record_list(step.kind, after=after, limit=BATCH)
        contains = []
        for each in listed:
            if target_of(step, each.key, self._clock.now()) == target:
                found = await self._settled(each)
                if found is not None and counts is not None:
                    counts.add(found)
                    contains.append(f"{each.kind}/{each.key}")
        if counts is None or not contains:
            self._after[step.kind] = oldest[0].key  # of another version
            return True
        counts.contains = contains
        version = 0 if record is None else record.version
        await self._engine.record_put(longer.kind, name, counts.encode(), version=version)
        self._naming.add((longer.kind, name))
        await self._forget(counts)
        return True

    async def _settled(self, record: Record) -> Counts | None:
        """Return what a record holds, when it contains nothing that is there; None if not."""
        settled = await self._settle(record)
        return None if settled is None else decode(settled.body)

    async def _settle_again(self, kind: str, key: str) -> None:
        record = await self._engine.record_get(kind, key)
        if record is None or await self._settle(record) is not None:
            self._naming.discard((kind, key))

    async def _settle(self, record: Record) -> Record | None:
        """Delete what a record contains, and then the names. Return the record without names; None
        if somebody may be reading, so that it has to keep them for a while.
        """
        counts = decode(record.body)
        if counts is None or not counts.contains:
            return record
        await self._forget(counts)
        if self._clock.now() - record.updated_at.timestamp() < NAMED_FOR:
            return None
        counts.contains = ()
        return await self._engine.record_put(
            record.kind, record.key, counts.encode(), version=record.version
        )

    async def _forget(self, counts: Counts) -> None:
        """Delete what these contain."""
        for name in counts.contains:
            kind, key = name.split("/", 1)
            await self._engine.record_delete(kind, key)

    async def _expire(self) -> None:
        """Delete days that are too old."""
        oldest = label(self._clock.now() - DAY.kept)
        for record in await self._engine.record_list(DAY.kind, limit=BATCH):
            if record.key >= oldest:
                break
            await self._engine.record_delete(DAY.kind, record.key)


def target_of(step: SeriesStep, key: str, now: float) -> tuple[SeriesStep, str] | None:
    """Return the hour or the day that a record is to be added to, and None if it is not yet."""
    moment = moment_of(key)
    if moment is None:
        return None
    hour, day = HOUR.start(moment), DAY.start(moment)
    age_of_hour, age_of_day = now - hour - HOUR.seconds, now - day - DAY.seconds
    if age_of_day >= HOUR.kept:
        return DAY, label(day)
    if step is MINUTE and age_of_hour >= MINUTE.kept and age_of_day < HOUR.kept - REST:
        return HOUR, label(hour)
    return None
