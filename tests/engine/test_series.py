"""Series over time: written by workers and servers, folded by upkeep, read by anybody."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

import headrace
from headrace.api_types.series import SeriesView
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, InvalidInput
from headrace.monitor.counters.worker_metrics import Publish
from headrace.monitor.series.depths import DepthSampler
from headrace.monitor.series.fold import FoldSeries
from headrace.monitor.series.read import SeriesReader
from headrace.monitor.series.records import (
    DAY,
    HOUR,
    MINUTE,
    MOST_PAIRS,
    MOST_QUEUES,
    Counts,
    Depth,
    label,
)
from headrace.monitor.series.write import MinuteWriter
from headrace.monitor.snapshot import Snapshots
from headrace.telemetry import BOUNDS, MOST_ERRORS, OTHERS, Telemetry
from tests.engine.conftest import Opener

START = datetime(2030, 1, 1, 12, 0, 20, tzinfo=UTC)
KINDS = (MINUTE.kind, HOUR.kind, DAY.kind)


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.offset = START.timestamp() - time.time()
    return clock


@pytest.fixture
async def app(engine_url: str, clock: Clock) -> AsyncIterator[headrace.App]:
    async with headrace.App(engine_url, clock=clock) as app:
        yield app


class Worker:
    """Counters and what writes them, as in a worker of this name."""

    def __init__(self, engine: Any, clock: Clock, name: str = "one") -> None:
        self.telemetry = Telemetry()
        self.clock = clock
        self.writer = MinuteWriter(
            engine=engine, telemetry=self.telemetry, worker=lambda: name, clock=clock
        )

    def complete(self, count: int, task: str = "add", queue: str = "default") -> None:
        counters = self.telemetry.of(task, queue)
        for _ in range(count):
            counters.completed += 1
            counters.wait.observe(0.02)
            counters.run.observe(0.2)

    async def write(self) -> None:
        await self.writer.write(self.clock.now())


class Faulty:
    """An engine whose calls for records fail, from one of them on: before it is done, or after."""

    def __init__(self, engine: Engine, *, calls: int, done: bool, error: type[Exception]) -> None:
        self._engine = engine
        self._left = calls
        self._done = done
        self._error = error

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._engine, name)

        async def counted(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                if self._done and self._left == -1:
                    await call(*arguments, **named)
                raise self._error
            return await call(*arguments, **named)

        return counted


class Killed(Exception):
    """As far as the store can tell, kill -9."""


async def keys(engine: Engine, kind: str) -> list[str]:
    return [record.key for record in await engine.record_list(kind)]


async def read(app: headrace.App, **wanted: Any) -> SeriesView:
    return await SeriesReader(app).read(**wanted)


def total(view: SeriesView) -> int:
    return sum(sum(point.outcomes.values()) for point in view.points)


# --- writing


async def test_a_worker_writes_one_record_a_minute_and_none_when_idle(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    worker = Worker(engine, clock)
    worker.complete(3)
    for _ in range(30):
        await worker.write()
        clock.advance(2)
    [first] = await keys(engine, MINUTE.kind)
    assert first.startswith("2030-01-01T12:00/one~")
    clock.advance(600)
    await worker.write()
    assert len(await keys(engine, MINUTE.kind)) == 1
    worker.complete(2)
    clock.advance(60)
    await worker.write()
    worker.complete(5)
    await worker.writer.finish()
    assert len(await keys(engine, MINUTE.kind)) == 3
    clock.advance(120)
    view = await read(app)
    assert [point.outcomes["completed"] for point in view.points if point.outcomes] == [3, 2, 5]
    assert (view.step, len(view.points)) == ("minute", 60)


async def test_an_error_that_leaves_it_open_whether_a_minute_was_stored_counts_it_once(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    for done in (False, True):
        worker = Worker(Faulty(engine, calls=0, done=done, error=EngineUnavailable), clock)
        worker.complete(3)
        clock.advance(60)
        with pytest.raises(EngineUnavailable):
            await worker.write()
        worker.complete(4)
        worker.writer._engine = engine
        await worker.write()  # the same minute: nothing new is written yet
        clock.advance(60)
        await worker.write()
        worker.complete(1)
        await worker.writer.finish()
    clock.advance(120)
    assert total(await read(app)) == 2 * 8


async def test_a_worker_that_starts_again_in_the_same_minute_replaces_nothing(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    for _ in range(3):
        worker = Worker(engine, clock)
        worker.complete(2)
        await worker.writer.finish()
    # The counters outlast a stop of the worker in the same process.
    again = MinuteWriter(
        engine=engine, telemetry=worker.telemetry, worker=lambda: "one", clock=clock
    )
    await again.finish()
    clock.advance(120)
    assert total(await read(app)) == 6


async def test_a_clock_that_is_put_back_replaces_nothing(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    worker = Worker(engine, clock)
    for move in (60, 60, -60, 60, 60):
        worker.complete(1)
        clock.offset += move
        await worker.write()
    clock.advance(300)
    assert total(await read(app)) == 5


async def test_tasks_that_are_counted_among_the_others_later_are_counted_once(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    telemetry = Telemetry()
    publish = Publish(engine=engine, telemetry=telemetry, worker=lambda: "one", clock=clock)
    for _ in range(4):
        counters = telemetry.of("rare", "default")
        counters.completed += 1
        counters.wait.observe(0.1)
        await publish.tick()
        clock.advance(4_000)
        await publish.tick()
    assert (OTHERS, OTHERS) in telemetry.tasks
    clock.advance(120)
    assert total(await read(app, step="hour")) == 4


async def test_records_are_bounded(engine: Engine, clock: Clock, app: headrace.App) -> None:
    worker = Worker(engine, clock)
    for number in range(MOST_PAIRS + 50):
        worker.complete(1 + (number % 2), task=f"task{number}")
    counters = worker.telemetry.of("task1", "default")
    for number in range(2 * MOST_ERRORS):
        counters.count_error(("ValueError", f"{number:016x}"))
    await worker.writer.finish()
    counts = Counts(samples=1)
    for number in range(MOST_QUEUES + 50):
        counts.depths[f"queue{number}"] = Depth([number, 0, 0, 1], [number, 0, 0, 1])
    await engine.record_put(MINUTE.kind, f"{label(clock.now())}/(depths)", counts.encode())
    for record in await engine.record_list(MINUTE.kind):
        assert len(record.body) < 60_000
    clock.advance(120)
    view = await read(app)
    assert total(view) == (MOST_PAIRS + 50) * 3 // 2
    assert sum(error.count for error in view.errors) <= 2 * MOST_ERRORS
    others = await read(app, queue=OTHERS)
    assert [point.depth.running for point in others.points if point.depth] == [50]


# --- folding


async def fold_all(engine: Any, clock: Clock) -> None:
    """Fold until nothing is left to do."""
    fold = FoldSeries(engine=engine, clock=clock)
    while (pause := await fold.tick()) < 300:
        clock.advance(2 * pause)


async def history(engine: Engine, clock: Clock, *, days: float, every: float = 1_200) -> int:
    """Two workers that complete something now and then, as they would have written it."""
    workers = [Worker(engine, clock, name) for name in ("one", "two")]
    done = 0
    for _ in range(int(days * 86_400 / every)):
        for worker in workers:
            worker.complete(1)
            worker.telemetry.of("add", "default").count("failed")
            worker.telemetry.of("add", "default").count_error(("ValueError", "f" * 16))
            done += 1
        clock.advance(every)
        for worker in workers:
            await worker.write()
    return done


async def test_minutes_become_hours_and_hours_become_days(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    done = await history(engine, clock, days=3, every=3_600)
    before = await read(app, step="day")
    assert before.points[-2].outcomes == {"completed": 48, "failed": 48}
    assert before.errors[0].count == done
    await fold_all(engine, clock)
    assert 22 * 2 <= len(await keys(engine, MINUTE.kind)) <= 25 * 2
    assert len(await keys(engine, HOUR.kind)) == len(set(await keys(engine, HOUR.kind))) >= 46
    after = await read(app, step="day")
    assert after.points == before.points
    assert after.errors == before.errors
    clock.advance(16 * 86_400)
    await fold_all(engine, clock)
    assert [await keys(engine, kind) for kind in KINDS[:2]] == [[], []]
    assert len(await keys(engine, DAY.kind)) == 4
    late = await read(app, step="day")
    assert [point for point in late.points if point.outcomes] == [
        point for point in before.points if point.outcomes
    ]
    # Records name what they contain only for as long as somebody may be reading.
    assert all(b"contains" not in each.body for each in await engine.record_list(DAY.kind))
    clock.advance(401 * 86_400)
    await fold_all(engine, clock)
    assert await keys(engine, DAY.kind) == []


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_nothing_is_counted_twice_wherever_a_fold_is_killed(
    engine: Engine, clock: Clock, app: headrace.App, done: bool
) -> None:
    expected = await history(engine, clock, days=0.25, every=2_400)
    since = START - timedelta(days=1)
    for days in (2, 16):
        clock.advance(days * 86_400)
        for calls in range(400):
            faulty = Faulty(engine, calls=calls % 12, done=done, error=Killed)
            fold = FoldSeries(engine=faulty, clock=clock)
            pause = 0.0
            try:
                pause = await fold.tick()
            except Killed:
                clock.advance(random.choice([1, 61]))
            # Between the life of one and of the next, somebody reads.
            assert total(await read(app, step="day", since=since)) == 2 * expected, calls
            if pause > 300:
                break
        else:
            pytest.fail("never done")
    assert await keys(engine, MINUTE.kind) == []


async def test_nothing_is_counted_twice_by_several_that_fold_at_once(
    engine: Engine, clock: Clock, app: headrace.App, open_another: Opener
) -> None:
    expected = await history(engine, clock, days=0.5, every=1_800)
    since = START - timedelta(days=1)
    engines = [await open_another() for _ in range(3)]
    for days in (2, 16):
        clock.advance(days * 86_400)
        folds = [FoldSeries(engine=each, clock=clock) for each in engines]
        for _ in range(200):
            reading = asyncio.create_task(read(app, step="day", since=since))
            pauses = await asyncio.gather(*(fold.tick() for fold in folds))
            assert total(await reading) == 2 * expected
            clock.advance(61)
            if min(pauses) > 300:
                break
        else:
            pytest.fail("never done")
    assert await keys(engine, MINUTE.kind) == []
    assert total(await read(app, step="day", since=since)) == 2 * expected


class Interrupted:
    """An engine where something else happens before the first call of a verb for a kind."""

    def __init__(
        self, engine: Engine, verb: str, kind: str, meanwhile: Callable[[], Awaitable[Any]]
    ) -> None:
        self._engine = engine
        self._place: tuple[str, str] | None = (verb, kind)
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._engine, name)

        async def interrupted(kind: str, *arguments: Any, **named: Any) -> Any:
            if self._place == (name, kind):
                self._place = None
                await self._meanwhile()
            return await call(kind, *arguments, **named)

        return interrupted


async def test_a_fold_that_was_held_up_undoes_nothing_of_what_others_did_meanwhile(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    early, late = Worker(engine, clock), Worker(engine, clock, "late")
    early.complete(1)
    await early.writer.finish()
    clock.advance(2 * 86_400)

    async def others() -> None:
        await fold_all(engine, clock)
        clock.offset -= 2 * 86_400
        late.complete(2)
        await late.writer.finish()
        clock.offset += 2 * 86_400
        await fold_all(engine, clock)

    held_up = Interrupted(engine, "record_put", HOUR.kind, others)
    await FoldSeries(engine=cast("Engine", held_up), clock=clock).tick()
    assert total(await read(app, step="hour", since=START)) == 3


async def test_a_reader_that_is_held_up_counts_nothing_twice(
    engine: Engine, clock: Clock, app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(engine, clock)
    worker.complete(1)
    await worker.writer.finish()
    for days in (2, 16):
        clock.advance(days * 86_400)

        async def folds() -> None:
            fold = FoldSeries(engine=engine, clock=clock)
            for _ in range(5):
                await fold.tick()

        for kind in (HOUR.kind, DAY.kind):
            held_up = Interrupted(engine, "record_list", kind, folds)
            with monkeypatch.context() as patched:
                patched.setattr(app, "_engine", held_up)
                assert total(await read(app, step="day", since=START)) == 1


async def test_records_of_another_version_are_left_alone_and_in_nobodys_way(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    await engine.record_put(MINUTE.kind, f"{label(clock.now())}/a", b'{"pairs": 7}')
    await engine.record_put(MINUTE.kind, "nonsense", b"{}")
    worker = Worker(engine, clock)
    worker.complete(1)
    await worker.writer.finish()
    clock.advance(2 * 86_400)
    fold = FoldSeries(engine=engine, clock=clock)
    for _ in range(6):
        await fold.tick()
        clock.advance(61)
    assert await keys(engine, HOUR.kind) == ["2030-01-01T12:00"]
    assert await keys(engine, MINUTE.kind) == ["2030-01-01T12:00/a", "nonsense"]
    assert total(await read(app, step="hour", since=START)) == 1


# --- depth


async def sample(*apps: headrace.App) -> None:
    """Take a sample as servers over these would."""
    await asyncio.gather(*(DepthSampler(app, Snapshots(app)).tick() for app in apps))


async def test_one_server_writes_the_depth_of_each_minute(
    engine: Engine, clock: Clock, app: headrace.App, engine_url: str
) -> None:
    @app.task(queue="mail")
    async def send() -> None: ...

    @app.task(queue="scans")
    async def scan() -> None: ...

    await app.enqueue_many([send.job(), send.job(), scan.job()])
    async with headrace.App(engine_url, clock=clock) as other:
        await sample(app, other)
        assert await keys(engine, MINUTE.kind) == ["2030-01-01T12:00/(depths)"]
        await app.enqueue_many([send.job() for _ in range(4)])
        clock.advance(60)
        await sample(app, other)
    assert len(await keys(engine, MINUTE.kind)) == 2
    clock.advance(120)

    async def depths(**wanted: Any) -> list[tuple[float, int]]:
        points = (await read(app, **wanted)).points
        return [(each.depth.ready, each.depth.most_ready) for each in points if each.depth]

    assert await depths() == [(3, 3), (7, 7)]
    assert await depths(queue="mail") == [(2, 2), (6, 6)]
    assert await depths(queues={"mail", "scans"}) == [(3, 3), (7, 7)]
    assert await depths(queues={"other"}) == [(0, 0), (0, 0)]
    clock.advance(2 * 86_400)
    await fold_all(engine, clock)
    assert await depths(step="hour", queue="mail", since=START) == [(4, 6)]


# --- reading


async def test_percentiles_are_within_one_bucket_of_the_truth(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    dice = random.Random(7)
    truth = [dice.lognormvariate(-2, 1.5) for _ in range(3_000)]
    workers = [Worker(engine, clock, name) for name in ("one", "two", "three")]
    for number, seconds in enumerate(truth):
        counters = workers[number % 3].telemetry.of("add", "default")
        counters.completed += 1
        counters.run.observe(seconds)
    for worker in workers:
        await worker.writer.finish()
    clock.advance(120)
    truth.sort()
    [run] = [point.run for point in (await read(app)).points if point.run]
    for share, shown in ((0.5, run.p50), (0.95, run.p95), (0.99, run.p99)):
        bucket = next(
            number for number, bound in enumerate(BOUNDS) if truth[int(share * 3_000)] <= bound
        )
        lower = BOUNDS[bucket - 2] if bucket > 1 else 0.0
        assert lower <= shown <= BOUNDS[bucket + 1]


async def test_series_are_of_a_task_of_a_queue_or_of_the_queues_that_a_key_is_for(
    engine: Engine, clock: Clock, app: headrace.App
) -> None:
    worker = Worker(engine, clock)
    worker.complete(1, "add", "default")
    worker.complete(2, "add", "mail")
    worker.complete(4, "send", "mail")
    worker.complete(8, OTHERS, OTHERS)
    await worker.writer.finish()
    clock.advance(120)
    assert total(await read(app)) == 15
    assert total(await read(app, task="add")) == 3
    assert total(await read(app, queue="mail")) == 6
    assert total(await read(app, queue="mail", task="add")) == 2
    assert total(await read(app, queues={"default"})) == 1
    assert total(await read(app, queues={"default"}, queue="mail")) == 0


async def test_many_readers_cost_one_read_a_minute(
    engine: Engine, clock: Clock, app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await history(engine, clock, days=0.1, every=60)
    listed: Counter[str] = Counter()
    asked = type(app.engine).record_list

    async def counting(self: Any, kind: str, **named: Any) -> Any:
        listed[kind] += 1
        return await asked(self, kind, **named)

    monkeypatch.setattr(type(app.engine), "record_list", counting)
    reader = SeriesReader(app)
    views = await asyncio.gather(*(reader.read(step="hour") for _ in range(50)))
    first = listed.total()
    assert first <= 24 + 3
    assert all(view is views[0] for view in views)
    await reader.read(step="hour")
    assert listed.total() == first
    clock.advance(60)
    await reader.read(step="hour")
    # Hours that are over are not read again.
    assert listed.total() - first <= 5


async def test_any_time_may_be_asked_for(app: headrace.App) -> None:
    for since, until in (
        (START, START - timedelta(days=2)),
        (datetime(9999, 12, 31, tzinfo=UTC), None),
        (None, datetime(1, 1, 1, tzinfo=UTC)),
    ):
        for step in ("minute", "hour", "day"):
            view = await read(app, since=since, until=until, step=step)
            assert (view.points, view.since) == ([], view.until)
    with pytest.raises(InvalidInput, match='"minute", "hour" or "day"'):
        await read(app, step="week")
    # As far as they are kept, however far back somebody asks.
    view = await read(app, since=START - timedelta(days=900))
    assert len(view.points) == 24 * 60
    assert view.since >= START - timedelta(days=1, minutes=1)
    assert len((await read(app, step="hour", since=START - timedelta(days=900))).points) <= 337
    assert len((await read(app, step="day", since=START - timedelta(days=900))).points) <= 401
