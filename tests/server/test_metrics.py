"""Numbers for Prometheus: what the engine shows, and what the workers of all processes count."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

import headrace
from headrace.breakers.by_hand import open_by_hand
from headrace.clock import Clock
from headrace.monitor import snapshot
from headrace.monitor.counters import worker_metrics
from headrace.monitor.counters.codec import counted_task
from headrace.monitor.counters.worker_metrics import Publish
from headrace.telemetry import OTHERS, TaskCounters, Telemetry
from tests.server.conftest import client_of
from tests.support.processes import until


async def test_numbers_for_prometheus(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_metrics, "PAUSE", 0.1)
    orchestrator = headrace.JobOrchestrator(local_app, name="here")
    async with client_of(local_app) as client, orchestrator:
        await local_app.enqueue("add", {"a": 1, "b": 2})
        await local_app.enqueue("broken")
        args = {"platform": "web", "document": {"title": "x"}}
        await client.post("/queues/scans/pause")
        await client.put("/queues/held/hold", json={"for": 60})
        await local_app.enqueue("add", {"a": 1, "b": 2}, queue="held")
        for lane in ("x", "y"):
            await open_by_hand(local_app.engine, ("default", lane), 60.0, by=None, reason=None)
        for _ in range(3):
            await local_app.enqueue("scan", args)
        text = ""

        async def told() -> bool:
            nonlocal text
            page = await client.get("/metrics")
            assert page.headers["content-type"].startswith("text/plain")
            text = page.text
            return all(f"{line}\n" in text for line in LINES)

        await until(told)
    for name in (
        "headrace_queue_oldest_seconds",
        "headrace_worker_memory_bytes",
        "headrace_worker_cpu_percent",
        "headrace_lane_waiting",
        "headrace_loop_blocks",
        "headrace_dispatcher_lag",
    ):
        assert f"# TYPE {name}" in text, name


LINES = (
    'headrace_attempts_total{outcome="completed",queue="default",task="add"} 1.0',
    'headrace_attempts_total{outcome="failed",queue="default",task="broken"} 1.0',
    'headrace_queue_paused{queue="scans"} 1.0',
    'headrace_queue_jobs{queue="scans",state="waiting"} 2.0',
    'headrace_queue_held{queue="held"} 1.0',
    'headrace_queue_held{queue="scans"} 0.0',
    'headrace_breakers_open{queue="default"} 2.0',
    'headrace_breakers_open{queue="scans"} 0.0',
    "headrace_engine_up 1.0",
    'headrace_workers{state="healthy"} 1.0',
    'headrace_wait_seconds_bucket{le="+Inf",queue="default",task="add"} 1.0',
    'headrace_run_seconds_count{queue="default",task="add"} 1.0',
    "headrace_worker_claimed_total 2.0",
)


async def test_what_a_dispatcher_that_died_said_last_is_not_told_as_if_it_were_so_now(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    said = b'{"type": "queue", "adapter": "kafka", "lag": 7, "late_seconds": 2.5}'
    await local_app.engine.record_put("dispatcher", "gone", said)
    lag = 'headrace_dispatcher_lag{adapter="kafka",dispatcher="gone"} 7.0\n'
    seen = 'headrace_dispatcher_seen_timestamp_seconds{adapter="kafka",dispatcher="gone"} '
    async with client_of(local_app) as client:
        alive = (await client.get("/metrics")).text
        local_app.clock.advance(31)
        dead = (await client.get("/metrics")).text
    assert lag in alive
    assert lag not in dead
    assert "headrace_dispatcher_late_seconds{" not in dead
    assert seen in alive
    assert seen in dead


async def test_a_worker_that_does_nothing_writes_nothing_down(app: headrace.App) -> None:
    telemetry, clock, name = Telemetry(), Clock(), "first"
    publish = Publish(engine=app.engine, telemetry=telemetry, worker=lambda: name, clock=clock)

    async def written() -> list[str]:
        return [record.key for record in await app.engine.record_list(worker_metrics.KIND)]

    telemetry.renewals += 1
    await publish.tick()
    assert await written() == []
    telemetry.of("add", "default").completed += 1
    await publish.tick()
    [before] = await app.engine.record_list(worker_metrics.KIND)
    telemetry.renewals += 1
    await publish.tick()
    [after] = await app.engine.record_list(worker_metrics.KIND)
    assert after.version == before.version
    # Once a minute it does, and takes away what those have left who did not end in good order.
    clock.advance(worker_metrics.IDLE_PAUSE)
    await app.engine.record_put(worker_metrics.KIND, "killed", b"{}")
    name = "renamed"
    await publish.tick()
    assert await written() == ["killed", "renamed"]
    clock.advance(worker_metrics.FORGET_AFTER.total_seconds() + 1)
    await publish.tick()
    assert "killed" not in await written()
    await publish.stop()
    assert await written() == []


async def test_a_thousand_looks_at_the_metrics_are_one_look_at_the_engine(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    look = local_app.engine.queues

    async def counted() -> object:
        looks.append(time.monotonic())
        return await look()

    monkeypatch.setattr(local_app.engine, "queues", counted)
    began = time.monotonic()
    async with client_of(local_app) as client:
        await asyncio.gather(*(client.get("/metrics") for _ in range(50)))
    assert len(looks) <= 1 + (time.monotonic() - began) / snapshot.FRESH_SECONDS


def pairs_of(telemetry: Telemetry, count: int, queue: str = "once") -> None:
    for number in range(count):
        counters = telemetry.of("add", f"{queue}-{number}")
        counters.completed += 1
        counters.run.observe(0.1)


async def test_a_worker_tells_of_the_queues_that_it_served_lately(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are counted together; no attempt is lost from the sums."""
    telemetry, clock = Telemetry(), Clock()
    publish = Publish(engine=app.engine, telemetry=telemetry, worker=lambda: "w", clock=clock)

    async def told() -> Telemetry:
        await publish.tick()
        return worker_metrics.decode(await app.engine.record_list(worker_metrics.KIND))["w"]

    pairs_of(telemetry, 20)
    assert len((await told()).tasks) == 20
    clock.advance(worker_metrics.FOLD_AFTER / 2)
    pairs_of(telemetry, 5)
    telemetry.of("add", "once-4").count("failed")
    assert len((await told()).tasks) == 20
    clock.advance(worker_metrics.FOLD_AFTER / 2 + 1)
    pairs_of(telemetry, 1, "new")
    after = await told()
    queues = {queue for _, queue in after.tasks}
    assert queues == {"new-0", OTHERS, *(f"once-{number}" for number in range(5))}
    assert after.outcomes() == telemetry.outcomes() == {"completed": 26, "failed": 1}
    assert after.of(OTHERS, OTHERS).run.count == 15
    monkeypatch.setattr(worker_metrics, "MOST_PAIRS", 3)
    pairs_of(telemetry, 1)
    after = await told()
    assert len(after.tasks) == 3 + 1
    assert ("add", "once-0") in after.tasks
    assert after.outcomes() == {"completed": 27, "failed": 1}
    # One that comes back after it was counted among the others begins anew.
    pairs_of(telemetry, 20)
    assert (await told()).outcomes() == {"completed": 47, "failed": 1}
    await publish.stop()


async def test_many_queues_are_written_down_in_pieces(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_metrics, "PIECE", 10)
    made: list[int] = []
    turns = 0

    def counted(counters: TaskCounters) -> object:
        made.append(turns)
        return one(counters)

    one = counted_task
    monkeypatch.setattr(worker_metrics, "counted_task", counted)
    telemetry, clock = Telemetry(), Clock()
    publish = Publish(engine=app.engine, telemetry=telemetry, worker=lambda: "w", clock=clock)
    pairs_of(telemetry, 95)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    await publish.tick()
    assert len(made) == 95
    assert max(Counter(made).values()) <= 10
    # Those that had nothing since are not made again.
    made.clear()
    pairs_of(telemetry, 2)
    await publish.tick()
    assert len(made) == 2
    running.cancel()
    await publish.stop()


async def test_a_busy_worker_takes_away_what_killed_ones_have_left(app: headrace.App) -> None:
    telemetry, clock = Telemetry(), app.clock
    publish = Publish(engine=app.engine, telemetry=telemetry, worker=lambda: "w", clock=clock)
    for number in range(2 * worker_metrics.TIDY_STEP + 3):
        await app.engine.record_put(worker_metrics.KIND, f"killed-{number}", b"{}")
    clock.advance(worker_metrics.FORGET_AFTER.total_seconds() + 1)
    await app.engine.record_put(worker_metrics.KIND, "alive", b"{}")
    for _ in range(2):
        pairs_of(telemetry, 1)
        await publish.tick()
    left = [record.key for record in await app.engine.record_list(worker_metrics.KIND)]
    assert left == ["alive", "w"]
    await publish.stop()
