"""What all workers have counted together, also those that are gone: it never decreases.

Every worker has a record with what it has counted and that is not in the total yet. The total is
one record. What always holds: **a worker's record has been added to the total if, and only if, the
total names it in `contains`.** So that it holds,

- a record is added and named by one write, guarded by the total's version;
- only its writer changes a record, guarded by its version. Who adds a record that somebody else has
  left behind closes it before, so that its writer, should it be there after all, begins another;
- a name stays for longer than it takes to read. Readers read workers' records, then the total.

The total also says which tasks in which queues have counters of their own: the first so many that
were ever seen. All others are counted together from their first attempt, so that no counter is ever
moved to another.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime

import msgspec

from headrace.engine.base import Records
from headrace.errors import RecordConflict
from headrace.model.views import Record
from headrace.monitor.counters.codec import CUMULATIVE, Counted, counted, read_counted
from headrace.telemetry import OTHERS, Telemetry

KIND = "counters"
TOTAL_KIND = "counters-total"
TOTAL_KEY = "all"
# So many tasks in queues have counters of their own.
MOST_NAMED = 1_000
# Names of records stay for so long.
CONTAINED_FOR = 3_600.0
TRIES = 20
PAGE = 200
Pair = tuple[str, str]


async def read_counters(engine: Records) -> Telemetry:
    """Return what all workers have counted, those with counters of their own in a fixed order."""
    records = [record async for page in _pages(engine) for record in page]
    _, stored = await _read(engine)
    total = stored.telemetry
    for record in records:
        found = None if record.key in stored.contains else read_counted(record.body)
        if found is not None:
            add(total, found.telemetry)
    return total


async def register(engine: Records, pairs: Iterable[Pair]) -> set[Pair]:
    """Give these tasks in queues counters of their own, as long as there is room. Return all that
    have.
    """
    wanted = list(pairs)
    for _ in range(TRIES):
        version, stored = await _read(engine)
        total = stored.telemetry
        new = [pair for pair in wanted if pair not in total.tasks]
        full = is_full(total.tasks)
        for pair in new:
            if not is_full(total.tasks):
                total.of(*pair)
        if not new or full or await _write(engine, total, stored.contains, version):
            return set(total.tasks)
    raise RecordConflict("the counters of all workers are changed by too many at once")


def is_full(named: Collection[Pair]) -> bool:
    """Whether no more tasks in queues can have counters of their own."""
    return len(named) - ((OTHERS, OTHERS) in named) >= MOST_NAMED


async def add_to_total(engine: Records, record: Record, now: float) -> None:
    """Add a record that nobody changes any more to the total, and delete it."""
    found = read_counted(record.body)
    for _ in range(TRIES):
        version, stored = await _read(engine)
        if found is None or record.key in stored.contains:
            break
        total = stored.telemetry
        add(total, found.telemetry)
        contains = await _still_named(engine, stored.contains, now)
        if await _write(engine, total, contains | {record.key: now}, version):
            break
    else:
        return  # it counts all the same, and somebody adds it later
    await engine.record_delete(KIND, record.key)


async def add_left_behind(engine: Records, oldest: datetime, now: float) -> None:
    """Add the records of workers that were killed, or had nothing to count for long."""
    async for page in _pages(engine):
        for record in page:
            found = read_counted(record.body) if record.updated_at < oldest else None
            if found is None:
                continue
            found.closed = True
            body = msgspec.json.encode(found)
            try:
                closed = await engine.record_put(KIND, record.key, body, version=record.version)
            except RecordConflict:
                continue  # it is not left behind, or somebody else adds it
            await add_to_total(engine, closed, now)


async def _still_named(engine: Records, contains: dict[str, float], now: float) -> dict[str, float]:
    """Leave out names of records that were deleted long ago."""
    return {
        key: since
        for key, since in contains.items()
        if now - since < CONTAINED_FOR or await engine.record_get(KIND, key) is not None
    }


def add(total: Telemetry, other: Telemetry) -> None:
    """Add what was counted elsewhere."""
    for name in CUMULATIVE:
        setattr(total, name, getattr(total, name) + getattr(other, name))
    total.exchange_seconds.add(other.exchange_seconds)
    for key, counters in other.tasks.items():
        total.of(*key).add(counters)


async def _pages(engine: Records) -> AsyncIterator[list[Record]]:
    after = ""
    while page := await engine.record_list(KIND, after=after, limit=PAGE):
        yield page
        after = page[-1].key


async def _read(engine: Records) -> tuple[int, Counted]:
    record = await engine.record_get(TOTAL_KIND, TOTAL_KEY)
    if record is None:
        return 0, counted(Telemetry())
    # In the form of another version it is begun anew: Prometheus knows counters that start again.
    return record.version, read_counted(record.body) or counted(Telemetry())


async def _write(
    engine: Records, total: Telemetry, contains: dict[str, float], version: int
) -> bool:
    body = counted(total)
    body.contains = contains
    try:
        await engine.record_put(TOTAL_KIND, TOTAL_KEY, msgspec.json.encode(body), version=version)
    except RecordConflict:
        await asyncio.sleep(random.random() * 0.02)  # noqa: S311 - two must not meet again
        return False
    return True
