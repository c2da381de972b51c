"""Counters of all workers: each attempt counts once, however workers end; series are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

import headrace
from headrace.clock import Clock
from headrace.errors import EngineUnavailable
from headrace.monitor.counters import total, write
from headrace.monitor.counters.total import KIND, add_left_behind, read_counters
from headrace.monitor.counters.write import CounterWriter
from headrace.monitor.metrics.counters import MOST_HISTOGRAMS, counted_metrics
from headrace.monitor.metrics.text import text_of
from headrace.telemetry import OTHERS, Telemetry


@pytest.fixture
async def app(tmp_path: object) -> AsyncIterator[headrace.App]:
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db") as app:
        yield app


class AWorker:
    """Counts and writes as a worker does."""

    def __init__(self, app: headrace.App, name: str = "w") -> None:
        self.telemetry, self.clock = Telemetry(), Clock()
        self.writer = CounterWriter(
            engine=app.engine, telemetry=self.telemetry, worker=lambda: name, clock=self.clock
        )

    def count(self, task: str = "add", queue: str = "default", number: int = 1) -> None:
        counters = self.telemetry.of(task, queue)
        for _ in range(number):
            counters.completed += 1
            counters.run.observe(0.1)
            self.telemetry.claimed += 1

    def fold(self, task: str, queue: str = "default") -> None:
        self.writer.fold((task, queue))
        self.telemetry.fold((task, queue))


async def completed(app: headrace.App) -> dict[str, int]:
    found = await read_counters(app.engine)
    assert found.claimed == sum(each.run.count for each in found.tasks.values())
    return {task: each.completed for (task, _), each in found.tasks.items() if each.completed}


async def left_behind(app: headrace.App) -> None:
    now = app.clock.utcnow() + timedelta(seconds=1)
    await add_left_behind(app.engine, now, app.clock.now())


async def test_what_workers_that_are_gone_have_counted_stays(app: headrace.App) -> None:
    one, two = AWorker(app, "one"), AWorker(app, "two")
    one.count(number=3)
    two.count(number=4)
    await one.writer.write()
    await two.writer.write()
    assert await completed(app) == {"add": 7}
    one.count()
    await one.writer.finish()
    assert await completed(app) == {"add": 8}
    # The other one was killed.
    await left_behind(app)
    assert await completed(app) == {"add": 8}
    assert await app.engine.record_list(KIND) == []
    again = AWorker(app, "one")
    again.count()
    await again.writer.finish()
    assert await completed(app) == {"add": 9}


async def test_a_worker_that_seemed_dead_counts_on(app: headrace.App) -> None:
    worker = AWorker(app)
    worker.count(number=5)
    await worker.writer.write()
    await left_behind(app)
    worker.count(number=2)
    # Refused, as its record is gone; then it begins another.
    await worker.writer.write()
    assert await completed(app) == {"add": 5}
    await worker.writer.write()
    assert await completed(app) == {"add": 7}
    await worker.writer.finish()
    assert await completed(app) == {"add": 7}


async def test_a_write_that_seemed_to_fail_counts_once(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = AWorker(app)
    put = app.engine.record_put

    async def half(*arguments: object, **options: object) -> object:
        await put(*arguments, **options)  # type: ignore[arg-type]
        raise EngineUnavailable("the answer was lost")

    for _ in range(2):
        worker.count()
        await worker.writer.write()
        worker.count()
        with monkeypatch.context() as patch:
            patch.setattr(app.engine, "record_put", half)
            with pytest.raises(EngineUnavailable):
                await worker.writer.write()
        worker.count()
        await worker.writer.write()
        await worker.writer.write()
    assert await completed(app) == {"add": 6}
    await worker.writer.finish()
    assert await completed(app) == {"add": 6}


async def test_a_write_that_seemed_to_fail_and_was_added_by_others_counts_once(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = AWorker(app)
    put = app.engine.record_put

    async def half(*arguments: object, **options: object) -> object:
        await put(*arguments, **options)  # type: ignore[arg-type]
        raise EngineUnavailable("the answer was lost")

    worker.count()
    await worker.writer.write()
    worker.count(number=2)
    with monkeypatch.context() as patch:
        patch.setattr(app.engine, "record_put", half)
        with pytest.raises(EngineUnavailable):
            await worker.writer.write()
    await worker.writer.write()  # it finds what was stored
    # Now it is silent for long, so somebody else adds its record.
    await left_behind(app)
    worker.count()
    await worker.writer.write()
    await worker.writer.write()
    assert await completed(app) == {"add": 4}
    await worker.writer.finish()
    assert await completed(app) == {"add": 4}


async def test_one_who_dies_while_it_adds_a_record_adds_it_once(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = AWorker(app)
    worker.count(number=3)

    async def dies(*_: object) -> bool:
        raise EngineUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(app.engine, "record_delete", dies)
        with pytest.raises(EngineUnavailable):
            await worker.writer.finish()
    assert await completed(app) == {"add": 3}
    for _ in range(2):
        await left_behind(app)
        assert await completed(app) == {"add": 3}


async def test_a_worker_without_attempts_that_stops_late_counts_once(app: headrace.App) -> None:
    worker, other = AWorker(app), AWorker(app, "other")
    worker.telemetry.exchange_failures += 1
    await worker.writer.write()
    await left_behind(app)
    # So much later that the total does not name what was added to it any more.
    other.clock.advance(total.CONTAINED_FOR + 1)
    other.count()
    await other.writer.finish()
    await worker.writer.finish()
    assert (await read_counters(app.engine)).exchange_failures == 1


async def test_many_who_add_at_once_lose_nothing(app: headrace.App) -> None:
    workers = [AWorker(app, f"w{number}") for number in range(8)]
    for worker in workers:
        worker.count()
    await asyncio.gather(*(worker.writer.finish() for worker in workers))
    await left_behind(app)
    assert await completed(app) == {"add": 8}
    assert await app.engine.record_list(KIND) == []


async def test_a_task_that_was_idle_for_long_keeps_its_counter(app: headrace.App) -> None:
    worker = AWorker(app)
    worker.count("rare", number=2)
    await worker.writer.write()
    worker.count("rare")
    worker.fold("rare")
    await worker.writer.write()
    assert await completed(app) == {"rare": 3}
    worker.count("rare")
    await worker.writer.finish()
    assert await completed(app) == {"rare": 4}


async def test_so_many_have_counters_of_their_own_and_the_rest_is_counted_together(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(total, "MOST_NAMED", 3)
    first, second = AWorker(app, "first"), AWorker(app, "second")
    for name in "abcde":
        first.count(name)
    await first.writer.write()
    assert await completed(app) == {"a": 1, "b": 1, "c": 1, OTHERS: 2}
    for name in "edcx":
        second.count(name)
    await second.writer.write()
    first.fold("d")
    first.fold("a")
    await first.writer.finish()
    assert await completed(app) == {"a": 1, "b": 1, "c": 2, OTHERS: 5}
    await second.writer.finish()
    assert await completed(app) == {"a": 1, "b": 1, "c": 2, OTHERS: 5}


async def test_a_large_record_of_a_busy_worker_is_added_now_and_then(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "LARGE", 2)
    worker = AWorker(app)
    for name in "abc":
        worker.count(name)
    await worker.writer.write()
    worker.clock.advance(write.LARGE_AFTER + 1)
    worker.count("a")
    await worker.writer.write()
    assert await app.engine.record_list(KIND) == []
    worker.count("b")
    await worker.writer.write()
    assert await completed(app) == {"a": 2, "b": 2, "c": 1}
    [record] = await app.engine.record_list(KIND)
    assert b'"c"' not in record.body


async def test_renewals_and_polls_of_an_idle_worker_are_no_reason_to_write(
    app: headrace.App,
) -> None:
    worker = AWorker(app)
    worker.telemetry.renewals += 1
    worker.telemetry.exchange_seconds.observe(0.1)
    await worker.writer.write()
    assert await app.engine.record_list(KIND) == []


def test_the_number_of_series_is_bounded() -> None:
    counted = Telemetry()
    for number in range(2_000):
        counters = counted.of(f"task-{number}", "default")
        counters.completed += 1
        counters.run.observe(1.0)
        counters.wait.observe(1.0)
    text = text_of(counted_metrics(counted)).decode()
    samples = [
        sample for metric in text_string_to_metric_families(text) for sample in metric.samples
    ]
    buckets = 2 * 21 * (MOST_HISTOGRAMS + 1)
    assert len(samples) < 2_000 + buckets + 100
    runs = [each for each in samples if each.name == "headrace_run_seconds_count"]
    assert len(runs) == MOST_HISTOGRAMS + 1
    assert sum(each.value for each in runs) == 2_000
