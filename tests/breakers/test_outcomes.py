"""What opens and closes a breaker, and what proves nothing: on the embedded engine, as it does not
depend on engines.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec
import pytest

import headrace
from headrace.breakers import store
from headrace.model.limits.breaker import Breaker
from headrace.model.times import moment_of
from tests.breakers.conftest import (
    LANE,
    PAUSE,
    Program,
    Service,
    Starter,
    all_done,
    audited,
    closed,
    enqueue,
    opened,
)
from tests.support.processes import until

KEY = ("default", LANE)
FIRST = Breaker(failures=1, within=60, pause=PAUSE)


@dataclass
class Row:
    """What a job of a chunk is given."""

    number: int


async def kept(app: headrace.App, lane: str = LANE) -> int:
    """How many failures of a lane are kept."""
    record = await app.engine.record_get(store.FAILURES, f"default/{lane}")
    return 0 if record is None else len(msgspec.json.decode(record.body)["times"])


async def test_what_does_not_count(here: str, program: Program, start: Starter) -> None:
    app = program(here)
    breaker = Breaker(failures=100, within=60, pause=600, ignore=(KeyError,))
    errors = [
        headrace.RetryLater(delay=600),
        headrace.RateLimited(after=600),
        headrace.Snooze(600),
        KeyError("ignored"),
        ValueError("counted"),
        headrace.NotRetryable("counted"),
    ]

    @app.task(breaker=breaker)
    async def odd(number: int) -> None:
        raise errors[number]

    @app.task(breaker=breaker)
    async def stuck(number: int) -> None:
        await asyncio.Event().wait()

    await enqueue(app, len(errors), "odd")
    stuck_id = (await app.tasks["stuck"].enqueue(1)).id
    bad = app.tasks["odd"].options().job(0)
    bad.args = b'{"other": 1}'
    await app.engine.insert([bad])
    worker = await start(app, max_workers=20)

    async def all_began() -> bool:
        jobs = await app.engine.get([*(await _ids(app, "odd"))])
        return all(job.token >= 1 and job.state.name != "RUNNING" for job in jobs)

    await until(all_began, "all have ended once")
    await until(lambda: _running(app, stuck_id), "it runs")
    await app.cancel(stuck_id)
    assert await all_done(app, [stuck_id]) == ["cancelled"]
    left = await app.tasks["stuck"].enqueue(2)
    await until(lambda: _running(app, left.id), "it runs")
    await worker.stop(grace=0)
    assert await kept(app, "task:odd") == 2
    assert await kept(app, "task:stuck") == 0


async def _ids(app: headrace.App, task: str) -> list[str]:
    page = await app.engine.list_jobs(headrace.JobFilter(tasks=(task,)), limit=100)
    return [job.id for job in page.jobs]


async def _running(app: headrace.App, job_id: str) -> bool:
    return (await app.get(job_id)).status.value == "running"


async def test_a_timeout_counts_and_so_does_each_retry(
    here: str, program: Program, start: Starter
) -> None:
    app = program(here)

    @app.task(
        timeout=0.05,
        retry=headrace.RetryPolicy(retries=2, base=0.01),
        breaker=Breaker(failures=100, within=60, pause=600),
    )
    async def late() -> None:
        await asyncio.Event().wait()

    await start(app)
    job = await late.enqueue()
    assert await all_done(app, [job.id]) == ["timeout"]
    await until(lambda: kept_is(app, "task:late", 3), "three failures")


async def kept_is(app: headrace.App, lane: str, count: int) -> bool:
    return await kept(app, lane) == count


async def test_each_job_of_a_chunk_counts_and_one_is_tried(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here)
    sizes: list[int] = []

    @app.task(chunk=10, chunk_wait=0.1, retries=0, breaker=Breaker(failures=10, within=60, pause=1))
    async def store_rows(chunk: headrace.Chunk[Row]) -> None:
        sizes.append(len(chunk))
        if service.broken:
            raise ConnectionError

    ids = [
        job.id
        for job in await app.enqueue_many(store_rows.job(Row(number)) for number in range(40))
    ]
    await start(app, max_workers=1)
    await opened(app)
    begun = len(sizes)
    await until(lambda: len(sizes) >= begun + 2, "two trials")
    service.broken = False
    await closed(app)
    trials = sizes[begun : begun + 2]
    assert trials == [1, 1]
    await all_done(app, ids)
    assert max(sizes[begun + 2 :]) > 1


@pytest.mark.parametrize("end", ["cancelled", "snoozed"])
async def test_a_trial_that_proves_nothing_is_followed_by_another(
    here: str, program: Program, start: Starter, service: Service, end: str
) -> None:
    app = program(here, FIRST)
    snooze = False

    @app.task(retries=0, breaker=FIRST)
    async def odd() -> None:
        await service.call()
        if snooze:
            raise headrace.Snooze(600)

    ids = [(await odd.enqueue()).id for _ in range(6)]
    await start(app, max_workers=1)
    await opened(app)
    await until(lambda: not service.running)
    service.calls.clear()
    service.broken, snooze = False, end == "snoozed"
    service.slow = end == "cancelled"
    await until(lambda: service.running or service.calls, "a trial")
    if end == "cancelled":
        view = await opened(app)
        assert view.trial in ids
        await app.cancel(view.trial)

    async def over() -> bool:
        found = await app.breakers()
        return bool(found) and found[0].trials == 1 and found[0].phase == "open"

    await until(over, "it proved nothing")
    snooze = service.slow = False
    await closed(app)
    assert service.calls[1] - service.calls[0] >= PAUSE


async def test_a_worker_starts_nothing_more_when_it_has_seen_enough(
    here: str, program: Program, start: Starter
) -> None:
    app = program(here)
    begun = 0

    @app.task(retries=0, breaker=Breaker(failures=20, within=60, pause=600))
    async def at_once(number: int) -> None:
        nonlocal begun
        begun += 1
        raise ConnectionError

    await enqueue(app, 3_000, "at_once")
    await start(app, max_workers=10)
    await opened(app)
    # Not what fails in a tenth of a second.
    assert begun < 100


async def test_jobs_that_wait_for_a_chunk_are_given_back(
    here: str, program: Program, start: Starter
) -> None:
    app = program(here)
    begun: list[int] = []

    @app.task(chunk=10, chunk_wait=300, breaker=FIRST)
    async def store_rows(chunk: headrace.Chunk[Row]) -> None:
        begun.append(len(chunk))

    jobs = await app.enqueue_many(store_rows.job(Row(number)) for number in range(3))
    ids = [job.id for job in jobs]
    await start(app)

    async def states() -> set[str]:
        return {"parked" if job.parked else job.status.value for job in await app.engine.get(ids)}

    async def claimed() -> bool:
        return await states() == {"running"}

    async def parked() -> bool:
        return await states() == {"parked"}

    await until(claimed, "they wait for others in the worker")
    await app.open_breaker("default", "task:store_rows", pause=600)
    await until(parked, "they are given back")
    assert begun == []


async def test_a_longer_hold_of_somebody_else_stays(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here, FIRST)
    await enqueue(app, 5)
    await start(app, max_workers=1)
    await opened(app)
    await app.engine.hold_lane(*KEY, 500.0)
    assert await app.close_breaker(*KEY)
    [rate] = await app.engine.rates(queue=KEY[0], lane=KEY[1])
    assert rate.held_until is not None
    await app.open_breaker(*KEY, pause=5)
    assert await store.held_until(app.engine, KEY) > await app.engine.now() + 400


async def test_it_is_opened_and_closed_by_hand(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here)
    service.broken = False
    view = await app.open_breaker(*KEY, pause=600, reason="they deploy", by="ada")
    assert view.cause == "opened by hand by ada: they deploy"
    ids = await enqueue(app, 5)
    await start(app)

    async def parked() -> bool:
        return all(job.parked for job in await app.engine.get(ids))

    await until(parked, "all are parked")
    [reason] = await app.why(ids[0])
    assert reason == (
        f"The circuit breaker of lane {LANE!r} is open since {view.since:%H:%M:%S} UTC: opened by "
        f"hand by ada: they deploy. One job is tried at {view.until:%H:%M:%S} UTC. Close it with: "
        f"headrace breakers close default {LANE}"
    )
    assert await app.close_breaker(*KEY)
    assert not await app.close_breaker(*KEY)
    assert await all_done(app, ids) == ["completed"] * 5
    # Opened for a short time, it closes by itself.
    await app.open_breaker(*KEY)
    ids = await enqueue(app, 3)
    await closed(app)
    assert await all_done(app, ids) == ["completed"] * 3


async def test_closing_forgets_the_failures(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here, Breaker(failures=3, within=60, pause=600))
    await enqueue(app, 10)
    await start(app, max_workers=1)
    await opened(app)
    await until(lambda: not service.running)
    service.broken = False
    assert await app.close_breaker(*KEY)
    assert await kept(app) == 0


async def test_only_breakers_that_a_task_has_are_opened_by_hand(
    here: str, program: Program
) -> None:
    app = program(here)
    with pytest.raises(headrace.InvalidInput, match="no task that is known here"):
        await app.open_breaker("default", "task:other", pause=60)
    with pytest.raises(headrace.InvalidInput, match="pause must be between 1"):
        await app.open_breaker(*KEY, pause=0.1)
    with pytest.raises(headrace.InvalidInput, match="one line"):
        await app.open_breaker(*KEY, reason="a\nb")


async def test_a_deploy_that_removes_the_breaker_closes_it(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here, Breaker(failures=1, within=60, pause=600))
    ids = await enqueue(app, 5)
    worker = await start(app, max_workers=1)
    await opened(app)
    await worker.stop()
    service.broken = False
    newer = program(here, lane=LANE)
    await start(newer)
    await closed(newer)
    assert "completed" in await all_done(newer, ids)


async def test_a_deploy_that_changes_the_pause_changes_the_next_one(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here, Breaker(failures=1, within=60, pause=1))
    await enqueue(app, 5)
    worker = await start(app, max_workers=1)
    await opened(app)
    await worker.stop()
    newer = program(here, Breaker(failures=5, within=60, pause=500))
    await start(newer)

    async def longer() -> bool:
        [found] = await newer.breakers()
        return (found.until - found.since).total_seconds() > 400

    await until(longer, "a trial fails, and the new pause counts")


async def test_what_nobody_comes_to_try_is_closed_and_old_failures_are_forgotten(
    here: str, program: Program, start: Starter
) -> None:
    app = program(here)
    await app.open_breaker(*KEY, pause=600)
    now = await app.engine.now()
    [old] = (await store.open_breakers(app.engine)).values()
    await store.change(app.engine, old, until=moment_of(now - 90_000))
    await store.count_failures(app.engine, ("default", "x"), FIRST, [now - 30], now)
    other = Breaker(failures=3, within=10, pause=1)
    await store.count_failures(app.engine, ("default", "y"), other, [now - 9.5], now)
    await app.engine.record_put(store.OPEN, "odd/record", b"{}")
    await start(app)
    await closed(app)
    assert await kept(app, "x") == 1


async def test_opening_and_closing_are_in_the_audit_log(
    here: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(here)
    await enqueue(app, 10)
    await start(app, name="w1")
    await opened(app)
    service.broken = False
    await closed(app)

    wanted = [("breaker.close", "worker w1"), ("breaker.open", "worker w1")]

    async def both() -> bool:
        return await audited(app) == wanted

    await until(both, "two lines")


async def test_an_app_without_breakers_asks_once(here: str) -> None:
    app = headrace.App(here)

    @app.task
    async def plain() -> None: ...

    async with app:
        await plain.enqueue()
        asked: list[str] = []
        whole = app.engine.record_list

        async def counted(kind: str, *, after: str = "", limit: int = 1_000) -> object:
            asked.append(kind)
            return await whole(kind, after=after, limit=limit)

        app.engine.record_list = counted  # type: ignore[method-assign, assignment]
        worker = headrace.JobOrchestrator(app)
        await worker.run_until_idle()
        assert asked.count(store.OPEN) == 1
        assert store.FAILURES not in asked
