"""What has happened to a job, told in order: of real jobs on each engine, and of long histories."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec

import headrace
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry, Failure
from headrace.model.status import State
from headrace.monitor.timeline import SHOWN, TimelineItem, attempts_of, timeline
from headrace.upkeep import DueJobs
from tests.support.verbs import a_worker, claim, complete, enqueue, the_job

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def told(app: headrace.App, job_id: str) -> list[TimelineItem]:
    job = await the_job(app.engine, job_id)
    items = timeline(job, await app.engine.entries(job_id), app.clock.utcnow())
    assert [item.at for item in items] == sorted(item.at for item in items)
    return items


def kinds(items: list[TimelineItem]) -> list[str]:
    return [item.kind for item in items]


async def test_a_job_that_waited_for_its_time_its_lane_and_a_worker(
    app: headrace.App, clock: Clock
) -> None:
    engine = app.engine
    worker = await a_worker(engine)
    await enqueue(engine, lane="l")
    job_id = await enqueue(engine, lane="l", delay=10)
    assert kinds(await told(app, job_id)) == ["created", "due"]
    [first] = await claim(engine, worker)
    clock.advance(11)
    await DueJobs(engine=engine).tick()
    items = await told(app, job_id)
    assert kinds(items) == ["created", "due", "lane"]
    assert items[-1].goes_on
    assert items[-1].words == "waits for its place in lane 'l'"
    clock.advance(5)
    await complete(engine, first)
    clock.advance(3)
    items = await told(app, job_id)
    assert kinds(items) == ["created", "due", "lane", "worker"]
    assert items[-1].words == "waits for a worker"
    [job] = await claim(engine, worker)
    assert [item.words for item in await told(app, job_id)][-1] == (
        "attempt 1 is running on worker 'worker'"
    )
    clock.advance(2)
    await complete(engine, job)
    items = await told(app, job_id)
    assert kinds(items) == ["created", "due", "lane", "worker", "attempt", "end"]
    for item, seconds in zip(items[1:5], (10, 6, 3, 2), strict=True):
        assert item.until is not None
        # No less than the clock was advanced.
        assert (item.until - item.at).total_seconds() > seconds - 0.1, item
    assert items[-1].words == "completed"


async def test_a_job_that_did_not_wait_for_its_lane_does_not_say_so(app: headrace.App) -> None:
    worker = await a_worker(app.engine)
    job_id = await enqueue(app.engine, lane="l")
    [job] = await claim(app.engine, worker)
    await complete(app.engine, job)
    assert "lane" not in kinds(await told(app, job_id))


async def test_retries_stages_sleeps_events_and_children(app: headrace.App, clock: Clock) -> None:
    @app.task
    async def child() -> int:
        return 1

    @app.task(retries=2)
    async def long(ctx: headrace.Context) -> str:
        await ctx.stage("reading", asyncio.sleep, 0)
        if ctx.attempt == 1:
            raise ConnectionError("no answer")
        await ctx.gather([child.job(), child.job()])
        await ctx.sleep(60, name="rest")
        return str(await ctx.wait("approved"))

    job = await long.enqueue()
    orchestrator = headrace.JobOrchestrator(app)
    for _ in range(4):
        await orchestrator.run_until_idle()
        clock.advance(120)
        await DueJobs(engine=app.engine).tick()
    await app.signal(job.id, "approved", "yes")
    await orchestrator.run_until_idle()
    items = await told(app, job.id)
    words = [item.words for item in items]
    assert words[0] == "created (code)"
    assert words[-1] == "completed"
    assert "stage 'reading'" in words
    assert "sleep 'rest'" in words
    assert "event 'approved' was delivered" in words
    assert "made 2 child jobs" in words
    assert "waited for the next attempt" in words
    failed = next(item for item in items if ", to be tried again" in item.words)
    assert failed.words == f"attempt 1 failed on worker {failed.worker!r}, to be tried again"
    assert failed.error == "ConnectionError: no answer"
    assert failed.attempt == 1
    assert words[-2].startswith("attempt 2 completed on worker ")


def a_log(lines: int) -> bytes:
    entries = [
        AttemptEntry(
            attempt=number,
            token=number,
            outcome="retry",
            worker="w",
            started_at=START + timedelta(seconds=10 * number),
            ended_at=START + timedelta(seconds=10 * number + 2),
            failure=Failure("ValueError", "x"),
        )
        for number in range(1, lines + 1)
    ]
    return b"\n".join(map(msgspec.json.encode, entries)) + b"\n"


def a_job(lines: int) -> Job:
    return Job(
        id=new_id(),
        task="work",
        queue="default",
        state=State.SCHEDULED,
        args_json=b"{}",
        created_at=START,
        run_at=START + timedelta(days=9),
        attempt=lines,
        log=a_log(lines),
    )


def test_a_very_long_log_is_told_by_its_first_and_last_lines() -> None:
    job = a_job(20_000)
    items = timeline(job, [], START + timedelta(days=8))
    assert len(items) < 5 * SHOWN
    [omitted] = [item for item in items if item.kind == "omitted"]
    assert omitted.words == "… 19,900 more attempts"
    numbers = [item.attempt for item in items if item.kind == "attempt"]
    assert numbers == [*range(1, SHOWN + 1), *range(20_000 - SHOWN + 1, 20_001)]
    # Nothing is made up about what was left out.
    between = [item for item in items if item.kind == "wait"]
    assert all(item.until is not None and item.until - item.at < timedelta(60) for item in between)
    first, left, last = attempts_of(a_job(2 * SHOWN))
    assert (len(first), left, last) == (2 * SHOWN, 0, [])


def test_a_line_that_was_cut_off_is_left_out() -> None:
    job = a_job(3)
    job.log = job.log[20:]
    numbers = [item.attempt for item in timeline(job, [], START) if item.kind == "attempt"]
    assert numbers == [2, 3]
