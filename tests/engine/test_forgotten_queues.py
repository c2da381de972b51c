"""Queues and lanes that nobody uses are forgotten, and are in nobody's way before that."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.conftest import Opener
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, the_job

DAY = 86_400.0


async def names(engine: Engine) -> list[str]:
    return [queue.name for queue in await engine.queues()]


async def finish_all(engine: Engine, worker: str) -> None:
    while jobs := await claim(engine, worker, 500):
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])


async def test_empty_queues_are_forgotten_a_day_after_their_last_job(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(queue=f"once-{n:04}") for n in range(1_200)])
    await finish_all(engine, worker)
    clock.advance(DAY / 2)
    await enqueue(engine, queue="once-0007")
    [job] = await claim(engine, worker)
    assert await complete(engine, job)
    await engine.prune(older_than=None)
    assert len(await names(engine)) == 1_200
    clock.advance(DAY / 2 + 10)
    await engine.prune(older_than=None)
    assert await names(engine) == ["once-0007"]


async def test_queues_that_are_paused_or_have_jobs_are_not_forgotten(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await engine.pause("paused", True)
    await engine.pause("resumed", True)
    await engine.pause("resumed", False)
    await enqueue(engine, queue="running")
    [running] = await claim(engine, worker)
    await enqueue(engine, queue="ready")
    await enqueue(engine, queue="scheduled", delay=30 * DAY)
    await engine.insert([a_job(queue="waiting", lane="l") for _ in range(2)])
    [held] = await claim(engine, worker, 1, ["waiting"])
    clock.advance(2 * DAY)
    await engine.prune(older_than=None)
    assert await names(engine) == ["paused", "ready", "running", "scheduled", "waiting"]
    assert await complete(engine, held)
    assert await complete(engine, running)
    assert len(await claim(engine, worker, 10)) == 2
    [paused] = [queue for queue in await engine.queues() if queue.paused]
    assert paused.name == "paused"


async def test_jobs_of_a_forgotten_queue_run(engine: Engine, clock: Clock) -> None:
    """Those that come in later, that were scheduled all the time, and that are run again."""
    worker = await a_worker(engine)
    scheduled = await enqueue(engine, queue="q", delay=3 * DAY)
    again = await enqueue(engine, queue="other")
    [job] = await claim(engine, worker)
    assert await complete(engine, job)
    clock.advance(2 * DAY)
    await engine.prune(older_than=None)
    later = await enqueue(engine, queue="q")
    assert await engine.rerun([again]) == [again]
    clock.advance(DAY)
    await engine.promote_due(10)
    assert await names(engine) == ["other", "q"]
    jobs = await claim(engine, worker, 10)
    assert {job.id for job in jobs} == {scheduled, again, later}
    assert [(await the_job(engine, job.id)).queue for job in jobs].count("q") == 2


async def test_a_queue_is_forgotten_though_the_clock_was_ahead(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    clock.offset = 100 * DAY
    await enqueue(engine, queue="ahead")
    clock.offset = 0.0
    await finish_all(engine, worker)
    await engine.prune(older_than=None)
    assert await names(engine) == []


async def test_a_paused_queue_hands_out_nothing_to_those_who_name_it_or_all(
    engine: Engine, open_another: Opener
) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(queue=f"q{n}") for n in range(5)])
    await engine.pause("q1", True)
    await engine.pause("q3", True)
    assert await claim(engine, worker, 10, ["q1", "q3", "none"]) == []
    assert [job.queue for job in await claim(engine, worker, 10, ["q0", "q1"])] == ["q0"]
    assert {job.queue for job in await claim(engine, worker, 10)} == {"q2", "q4"}
    await engine.pause("q3", False)
    assert [job.queue for job in await claim(engine, worker, 10)] == ["q3"]


async def test_all_idle_lanes_are_cleared_however_small_a_step_is(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane=f"l{n}") for n in range(300)])
    await engine.insert([a_job(queue="held", lane=f"l{n}") for n in range(3)])
    held = await claim(engine, worker, 10, ["held"])
    await finish_all(engine, worker)
    await engine.prune(older_than=None, limit=50)
    assert await idle_lanes(engine) == 0
    for job in held:
        assert await complete(engine, job)


async def idle_lanes(engine: Engine) -> int:
    """How many lanes are kept though nobody is in them, behind the engine's back."""
    if engine.name == "redis":
        return 0  # it forgets a lane with its last job; the audit tells if not
    if isinstance(engine, PostgresEngine):
        [(idle,)] = await engine._common.fetch("SELECT count(*) FROM lane WHERE used = 0")
        return int(idle)
    reader = engine._reader  # type: ignore[attr-defined]
    count: int = await reader.run(
        lambda it: it.connection.execute("SELECT count(*) FROM lane WHERE used = 0").fetchone()[0]
    )
    return count
