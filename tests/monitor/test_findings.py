"""What is wrong is said in sentences, and nothing is said when all is well."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob, JobFilter
from headrace.model.outcome import Failed, Failure, Reserved, Retry, Settlement
from headrace.model.views import Finding
from headrace.model.worker import WorkerStats
from headrace.monitor.findings.failures import FEWEST
from headrace.monitor.findings.lanes import LONG_SECONDS
from headrace.monitor.findings.queues import HELD_SECONDS
from headrace.monitor.findings.read import FAILURES_SECONDS, MEANWHILE_SECONDS
from headrace.monitor.findings.summary import Summaries
from headrace.monitor.findings.workers import TOLD_FOR
from headrace.upkeep import Sweep
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue, fail, settle

# What the engines of the tests say about themselves: their PostgreSQL does not sync to disk.
EXPECTED = "engine."


async def found(app: headrace.App, *queues: str) -> dict[str, Finding]:
    """What is wrong now, by kind."""
    summary = await Summaries(app).get(queues)
    return {each.kind: each for each in summary.findings if not each.kind.startswith(EXPECTED)}


async def renew(engine: Engine, *workers: str, healthy: bool = True) -> None:
    for worker in workers:
        keeper = engine.keeper(worker, LEASE)
        try:
            stats = WorkerStats(healthy=healthy)
            assert (await asyncio.to_thread(keeper.renew, stats)).alive
        finally:
            await asyncio.to_thread(keeper.close)


async def advance(clock: Clock, engine: Engine, seconds: float, *workers: str) -> None:
    """Let time pass for workers that live."""
    while seconds > 0:
        step = min(seconds, LEASE / 2)
        clock.advance(step)
        await renew(engine, *workers)
        seconds -= step


async def test_nothing_is_said_when_all_is_well(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    assert await found(app) == {}
    worker = await a_worker(engine)
    for lane in (None, "a", "a"):
        await enqueue(engine, lane=lane)
    await enqueue(engine, delay=60)
    for job in await claim(engine, worker, 5):
        await complete(engine, job)
    await engine.pause("empty", True)
    assert await found(app) == {}


async def test_a_paused_queue_with_pending_jobs(app: headrace.App) -> None:
    await a_worker(app.engine)
    await enqueue(app.engine, queue="mail")
    await app.pause("mail", reason="provider is down", duration=3600, by="ada")
    [finding] = (await found(app)).values()
    assert finding.kind == "queue.paused"
    assert finding.detail.startswith("queue 'mail' has 1 pending job and is paused by ada since ")
    assert finding.detail.endswith(": provider is down")
    assert finding.remedy == "Resume it: headrace queues resume mail"
    assert (finding.action, finding.name) == ("resume", "mail")
    assert finding.since is not None
    assert msgspec.to_builtins(finding.target) == {"page": "queue", "query": {"name": "mail"}}
    await app.resume("mail")
    assert await found(app) == {}


async def test_a_pause_of_which_nothing_is_known(app: headrace.App) -> None:
    await a_worker(app.engine)
    await enqueue(app.engine, queue="mail")
    await app.engine.pause("mail", True)
    [finding] = (await found(app)).values()
    assert finding.detail == "queue 'mail' has 1 pending job and is paused"
    assert finding.since is None


async def test_a_queue_without_a_worker(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    await a_worker(engine, queues=("other",))
    await enqueue(engine, queue="mail")
    clock.advance(20)
    [finding] = (await found(app)).values()
    assert finding.kind == "queue.no-worker"
    assert finding.detail == "queue 'mail' has 1 pending job, but no worker serves it"
    assert finding.since is not None
    assert timedelta(seconds=15) < clock.utcnow() - finding.since < timedelta(seconds=60)
    await a_worker(engine, "second", queues=("mail",))
    assert await found(app) == {}


async def test_jobs_of_a_task_that_no_worker_knows(app: headrace.App) -> None:
    engine = app.engine
    worker = await a_worker(engine, tasks=("work",))
    await enqueue(engine, task="report")
    [job] = await claim(engine, worker)
    await settle(engine, job, Reserved())
    [finding] = (await found(app)).values()
    assert finding.kind == "task.unknown"
    assert "1 pending job of task 'report', which no worker knows" in finding.detail
    await a_worker(engine, "second", tasks=("report",))
    assert await found(app) == {}


async def test_a_lost_worker_with_what_it_held(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    lost = await a_worker(engine, "lost")
    for _ in range(3):
        await enqueue(engine)
    assert len(await claim(engine, lost, 2)) == 2
    clock.advance(LEASE + 1)
    other = await a_worker(engine, "other")
    await engine.take_lost(1)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level, finding.name) == ("worker.lost", "error", "lost")
    assert finding.detail.endswith("; it holds 2 jobs (work)")
    await Sweep(engine=engine, clock=clock, lease_seconds=LEASE).tick()
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level) == ("worker.lost", "warning")
    assert finding.detail.endswith("; it holds nothing any more")
    await advance(clock, engine, TOLD_FOR.total_seconds(), other)
    assert await found(app) == {}


async def test_a_lost_worker_whose_successor_lives(app: headrace.App, clock: Clock) -> None:
    await a_worker(app.engine, "same")
    clock.advance(LEASE + 1)
    await app.engine.take_lost(1)
    assert "worker.lost" in await found(app)
    await a_worker(app.engine, "same")
    assert await found(app) == {}


async def test_a_worker_that_is_not_well(app: headrace.App) -> None:
    worker = await a_worker(app.engine, "ill")
    await renew(app.engine, worker, healthy=False)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.name) == ("worker.unhealthy", "ill")
    await renew(app.engine, worker)
    assert await found(app) == {}


async def held_lane(app: headrace.App, worker: str, **fields: object) -> ClaimedJob:
    for _ in range(4):
        await enqueue(app.engine, lane="user:7", **fields)
    [job] = await claim(app.engine, worker, 1)
    return job


async def test_a_lane_that_one_job_blocks(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    worker = await a_worker(engine)
    job = await held_lane(app, worker)
    await advance(clock, engine, LONG_SECONDS - 60, worker)
    assert await found(app) == {}
    await advance(clock, engine, 61, worker)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.name) == ("lane.blocked", "default/user:7")
    assert f"is held by job {job.id} of task 'work', which has been running for 5 min" in (
        finding.detail
    )
    assert finding.detail.endswith("; 3 jobs wait for it")
    assert f"headrace jobs cancel {job.id}" in finding.remedy
    assert msgspec.to_builtins(finding.target) == {"page": "job", "query": {"id": job.id}}
    await complete(engine, job)
    # The next one of the lane has just begun.
    await claim(engine, worker)
    assert await found(app) == {}


async def test_a_lane_whose_holder_waits_for_a_retry(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    worker = await a_worker(engine)
    job = await held_lane(app, worker)
    await settle(engine, job, Retry(Failure("ValueError", "x"), 7_200.0))
    await advance(clock, engine, LONG_SECONDS + 1, worker)
    [finding] = (await found(app)).values()
    assert finding.kind == "lane.blocked"
    assert "which waits until " in finding.detail


async def test_a_lane_whose_holder_waits_for_its_rate_is_not_blocked(
    app: headrace.App, clock: Clock
) -> None:
    """Those behind it could not start either, and to cancel it would help nobody."""
    engine = app.engine
    worker = await a_worker(engine)
    for _ in range(3):
        await enqueue(engine, lane="user:7")
    await app.set_rate("default", "1/d", lane="user:7")
    [job] = await claim(engine, worker, 3)
    await complete(engine, job)
    assert await claim(engine, worker, 3) == []
    await advance(clock, engine, LONG_SECONDS + 1, worker)
    [lane] = await app.lanes()
    assert (lane.used, lane.waiting) == (1, 1)
    assert await found(app) == {}


async def test_a_held_queue_with_pending_jobs(app: headrace.App, clock: Clock) -> None:
    worker = await a_worker(app.engine)
    await enqueue(app.engine, queue="mail")
    await app.set_rate("mail", "1/s")
    await app.hold("mail", duration=3_600, reason="provider is down", by="ada")
    assert await found(app) == {}
    await advance(clock, app.engine, HELD_SECONDS + 1, worker)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level, finding.name) == ("queue.held", "warning", "mail")
    assert finding.detail.startswith("queue 'mail' has 1 pending job and is held until 20")
    assert finding.detail.endswith(" UTC by ada: provider is down")
    assert finding.remedy == "Let them start: headrace rates release mail"
    assert msgspec.to_builtins(finding.target) == {"page": "queue", "query": {"name": "mail"}}
    await app.release_hold("mail")
    assert await found(app) == {}


async def failures(engine: Engine, worker: str, number: int, kind: str = "ValueError") -> None:
    for _ in range(number):
        await enqueue(engine, task="report", queue="reports")
    jobs = await claim(engine, worker, number, ["reports"])
    assert len(jobs) == number
    outcome = Failed(Failure(kind, "it broke"))
    await engine.exchange([Settlement(job.id, job.token, outcome) for job in jobs])


async def test_a_spike_of_failures(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    worker = await a_worker(engine)
    await failures(engine, worker, 10)
    await advance(clock, engine, 600, worker)
    await failures(engine, worker, FEWEST - 1, "KeyError")
    assert await found(app) == {}
    await failures(engine, worker, 1)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level) == ("failures.spike", "error")
    assert finding.detail == (
        "20 jobs failed in the last 5 minutes, after 10 in the 55 minutes before; "
        "most of them KeyError in task 'report'"
    )
    assert finding.since is not None
    assert msgspec.to_builtins(finding.target) == {
        "page": "errors",
        "query": {"task": "report", "error_type": "KeyError"},
    }
    # Those who may not see the queue are not told.
    assert await found(app, "other") == {}
    assert "failures.spike" in await found(app, "reports")
    await advance(clock, engine, 301, worker)
    assert await found(app) == {}


async def test_failures_as_many_as_usual_are_no_spike(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    worker = await a_worker(engine)
    for _ in range(3):
        await failures(engine, worker, 50)
        await advance(clock, engine, 310, worker)
    await failures(engine, worker, 20)
    assert await found(app) == {}


REPORT = {"type": "queue", "adapter": "kafka", "healthy": True, "host": "h", "pid": 1}


async def report(engine: Engine, name: str, **fields: object) -> None:
    await engine.record_put("dispatcher", name, msgspec.json.encode(REPORT | fields))


async def test_a_dispatcher_that_is_behind_or_silent(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    await report(engine, "first", lag=999)
    assert await found(app) == {}
    await report(engine, "first", lag=1_000)
    [finding] = (await found(app)).values()
    assert finding.kind == "dispatcher.behind"
    assert finding.detail == (
        "kafka dispatcher 'first' is behind: 1,000 messages wait to become jobs"
    )
    await report(engine, "first", healthy=False)
    assert set(await found(app)) == {"dispatcher.unhealthy"}
    await report(engine, "first")
    clock.advance(60)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level) == ("dispatcher.silent", "error")
    await report(engine, "second")
    [finding] = (await found(app)).values()
    assert (finding.name, finding.level) == ("first", "warning")
    clock.advance(1_000)
    await report(engine, "second")
    assert await found(app) == {}


async def test_a_schedule_whose_time_has_passed(app: headrace.App, clock: Clock) -> None:
    await app.put_schedule("nightly", "*/5 * * * *", "broken")
    assert await found(app) == {}
    clock.advance(600)
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.name) == ("schedule.missed", "nightly")
    assert finding.detail.startswith("schedule 'nightly' was due at ")
    assert finding.detail.endswith("late, and no cron dispatcher runs")
    assert finding.remedy == "Start one: headrace dispatcher cron --app …"
    await app.enable_schedule("nightly", False)
    assert await found(app) == {}


async def test_a_schedule_that_has_passed_over_times(app: headrace.App, clock: Clock) -> None:
    await app.put_schedule("nightly", "*/5 * * * *", "broken", missed="skip")
    clock.advance(1_000)
    await a_worker(app.engine)
    await CronDispatcher(app).tick()
    [finding] = (await found(app)).values()
    assert (finding.kind, finding.level) == ("schedule.missed", "warning")
    assert finding.action == "trigger"


async def test_what_the_engine_says_about_itself(clock: Clock) -> None:
    async with headrace.App("sqlite:///:memory:", clock=clock) as app:
        [finding] = (await app.summary()).findings
        assert (finding.kind, finding.level) == ("engine.storage", "warning")


async def test_many_callers_share_one_summary(app: headrace.App) -> None:
    asked: list[str] = []
    engine = app.engine
    real = engine.queues

    async def queues() -> object:
        asked.append("queues")
        return await real()

    engine.queues = queues  # type: ignore[assignment,method-assign]
    summaries = await asyncio.gather(*(app.summary() for _ in range(50)))
    assert len({id(each) for each in summaries}) == 1
    assert asked == ["queues"]


async def test_nobody_waits_for_what_is_read_now_and_then(app: headrace.App, clock: Clock) -> None:
    """It is read meanwhile. Somebody who has changed something is not shown what was before."""
    engine = app.engine
    worker = await a_worker(engine)
    summaries = Summaries(app, meanwhile=MEANWHILE_SECONDS)

    async def kinds() -> set[str]:
        clock.advance(FAILURES_SECONDS)
        await renew(engine, worker)
        summaries._snapshots.forget()
        return {each.kind for each in (await summaries.get()).findings}

    spike = "failures.spike"
    assert spike not in await kinds()
    await failures(engine, worker, FEWEST)
    assert spike not in await kinds()
    async with asyncio.timeout(30):
        while spike not in await kinds():
            pass
    for job in (await engine.list_jobs(JobFilter(), limit=99)).jobs:
        await app.retry(job.id)
    summaries.forget()
    assert spike not in await kinds()
    # And who comes after a long time gets nothing that old.
    await failures(engine, worker, FEWEST)
    clock.advance(MEANWHILE_SECONDS)
    assert spike in await kinds()


async def test_somebody_with_some_queues_sees_only_these(app: headrace.App, clock: Clock) -> None:
    engine = app.engine
    mine = await a_worker(engine, "mine", queues=("mine", "theirs"), tasks=("secret",))
    await a_worker(engine, "theirs", queues=("theirs",))
    for queue in ("mine", "theirs"):
        await enqueue(engine, queue=queue, lane=queue)
        await enqueue(engine, queue=queue, lane=queue)
        await app.pause(queue)
    await app.put_schedule("nightly", "*/5 * * * *", "broken")
    await report(engine, "first", lag=9_999)
    await advance(clock, engine, 600, mine)
    summary = await Summaries(app).get({"mine"})
    assert "theirs" not in msgspec.json.encode(summary).decode()
    assert {each.kind for each in summary.findings} == {"queue.paused"}
    assert [each.name for each in summary.workers] == ["mine"]
    assert summary.workers[0].tasks is None
    whole = await Summaries(app).get()
    assert {each.kind for each in whole.findings} >= {"schedule.missed", "dispatcher.silent"}


@pytest.mark.parametrize("level", ["error", "warning"])
async def test_errors_come_first(app: headrace.App, level: str) -> None:
    worker = await a_worker(app.engine, queues=("mail",))
    await enqueue(app.engine, queue="mail")
    await app.pause("mail")
    await enqueue(app.engine, queue="zebra")
    await renew(app.engine, worker)
    levels = [each.level for each in (await Summaries(app).get()).findings]
    assert levels == sorted(levels, key=lambda each: each != "error")
    assert level in levels


async def test_a_job_that_failed_is_no_spike(app: headrace.App) -> None:
    worker = await a_worker(app.engine)
    await enqueue(app.engine)
    [job] = await claim(app.engine, worker)
    await fail(app.engine, job)
    assert await found(app) == {}
