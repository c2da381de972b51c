"""Failed jobs in groups: right counts, right bounds, and nothing that is to be hidden."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import HeadraceError
from headrace.model.fingerprint import fingerprint
from headrace.model.job import JobFilter
from headrace.model.outcome import Failed, Failure, Outcome, Settlement, TimedOut
from headrace.model.views import JobPage
from headrace.monitor import errors
from headrace.monitor.errors import MOST_POINTS, error_groups
from tests.support.verbs import a_job, a_worker, claim


async def ended(engine: Engine, worker: str, task: str, outcomes: list[Outcome]) -> list[str]:
    """Jobs of a task with these outcomes, in this order."""
    queue = f"{task}-queue"
    new = [a_job(task=task, queue=queue) for _ in outcomes]
    await engine.insert(new)
    jobs = await claim(engine, worker, len(new), [queue])
    assert [job.id for job in jobs] == [job.id for job in new]
    settled = zip(jobs, outcomes, strict=True)
    answer = await engine.exchange([Settlement(job.id, job.token, each) for job, each in settled])
    assert not answer.refused
    return [job.id for job in new]


def failed(kind: str, message: str) -> Failed:
    return Failed(Failure(kind, message))


async def test_failures_are_grouped_by_task_error_and_fingerprint(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    began = clock.utcnow() - timedelta(seconds=1)
    lost = [failed("ConnectionError", f"cannot reach 10.0.0.{n}:5432") for n in range(30)]
    missing = [failed("KeyError", "'name'")] * 7
    first = await ended(engine, worker, "send", [*lost, *missing])
    clock.advance(130)
    second = await ended(engine, worker, "read", [*lost[:5], TimedOut(Failure("TimedOut", "slow"))])
    found = await error_groups(engine, JobFilter())
    assert (found.looked_at, found.complete) == (43, True)
    assert [(each.task, each.error_type, each.count) for each in found.groups] == [
        ("send", "ConnectionError", 30),
        ("send", "KeyError", 7),
        ("read", "ConnectionError", 5),
        ("read", "TimedOut", 1),
    ]
    group = found.groups[0]
    assert group.fingerprint == fingerprint("ConnectionError", "cannot reach 10.0.0.3:5432")
    assert group.message == "cannot reach 10.0.0.29:5432"
    assert group.normalised == "cannot reach <number>"
    assert group.job_ids == first[25:30][::-1]
    assert began < group.first_at <= group.last_at < clock.utcnow()
    assert group.queues == ["send-queue"]
    assert found.minute_seconds == 60
    assert all(sum(each.minutes) == each.count for each in found.groups)
    assert len({len(each.minutes) for each in found.groups}) == 1
    assert found.groups[2].minutes[0] == 0
    assert found.groups[2].job_ids[-1] in second


async def test_groups_of_some_failures_only(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await ended(engine, worker, "send", [failed("E", "x")] * 3)
    clock.advance(60)
    middle = clock.utcnow()
    await ended(engine, worker, "read", [failed("E", "x")] * 2)

    async def counts(**fields: object) -> list[int]:
        wanted = JobFilter(**fields)  # type: ignore[arg-type]
        return [each.count for each in (await error_groups(engine, wanted)).groups]

    assert await counts() == [3, 2]
    assert await counts(tasks=("read",)) == [2]
    assert await counts(queues=("send-queue",)) == [3]
    assert await counts(finished_after=middle) == [2]
    assert await counts(finished_before=middle) == [3]
    assert await counts(tasks=("none",)) == []
    empty = await error_groups(engine, JobFilter(tasks=("none",)))
    assert (empty.looked_at, empty.complete, empty.first_minute) == (0, True, None)


async def test_only_the_newest_failures_are_looked_at(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "PAGE", 10)
    monkeypatch.setattr(errors, "STEP", 10)
    worker = await a_worker(engine)
    await ended(engine, worker, "old", [failed("E", "x")] * 10)
    await ended(engine, worker, "new", [failed("E", "x")] * 25)
    found = await error_groups(engine, JobFilter(), most=25)
    assert [(each.task, each.count) for each in found.groups] == [("new", 25)]
    assert (found.looked_at, found.complete) == (25, False)
    # The work is bounded, also if few match.
    monkeypatch.setattr(errors, "LOOK", 20)
    found = await error_groups(engine, JobFilter(tasks=("old",)))
    assert (found.looked_at, found.complete) == (0, False)


async def test_the_store_rests_between_pages_that_nobody_waits_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "PAGE", 10)
    await ended(engine, await a_worker(engine), "send", [failed("E", "x")] * 25)
    # A rest without end: what is asked before it is what others have to wait for.
    monkeypatch.setattr(errors, "GENTLY", 1e9)
    first, pages = asyncio.Event(), list[int]()
    list_jobs = engine.list_jobs

    async def counted(*given: Any, **named: Any) -> JobPage:
        page = await list_jobs(*given, **named)
        pages.append(len(page.jobs))
        first.set()
        return page

    engine.list_jobs = counted  # type: ignore[method-assign]
    gentle = asyncio.create_task(error_groups(engine, JobFilter(), gently=True))
    await first.wait()
    # Who waits does not rest.
    assert (await error_groups(engine, JobFilter())).looked_at == 25
    gentle.cancel()
    assert pages == [10, 10, 10, 5]
    with pytest.raises(asyncio.CancelledError):
        await gentle


async def test_small_groups_beyond_the_first_are_counted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "MOST_GROUPS", 2)
    worker = await a_worker(engine)
    kinds = ["A", "A", "A", "B", "B", "C", "D"]
    await ended(engine, worker, "send", [failed(kind, "x") for kind in kinds])
    found = await error_groups(engine, JobFilter())
    assert [each.error_type for each in found.groups] == ["A", "B"]
    assert (found.other_groups, found.other_failures, found.looked_at) == (2, 2, 7)


async def test_a_long_time_is_told_in_fewer_points(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await ended(engine, worker, "send", [failed("E", "x")])
    clock.advance(5 * 86_400)
    await ended(engine, await a_worker(engine), "send", [failed("E", "x")])
    [group] = (found := await error_groups(engine, JobFilter())).groups
    assert len(group.minutes) <= MOST_POINTS
    assert (group.minutes[0], group.minutes[-1], sum(group.minutes)) == (1, 1, 2)
    assert found.minute_seconds % 60 == 0


async def test_a_job_that_is_run_again_is_in_no_group(app: headrace.App) -> None:
    worker = await a_worker(app.engine)
    [one, two] = await ended(app.engine, worker, "send", [failed("E", "x")] * 2)
    assert [each.count for each in (await app.errors()).groups] == [2]
    await app.retry(one)
    [group] = (await app.errors()).groups
    assert group.job_ids == [two]


async def test_bad_filters_are_refused(app: headrace.App, clock: Clock) -> None:
    with pytest.raises(HeadraceError, match="task"):
        await app.errors(tasks=["no such/name!"])
    with pytest.raises(HeadraceError, match="time zone"):
        await app.errors(since=clock.utcnow().replace(tzinfo=None))


async def test_groups_that_differ_in_what_is_hidden_are_one(engine: Engine) -> None:
    worker = await a_worker(engine, "w")
    words = ["alpha", "beta", "alpha"]
    outcomes: list[Outcome] = [failed("ValueError", f"cannot log in with {each}") for each in words]
    ids = await ended(engine, worker, "login", outcomes)
    await ended(engine, worker, "login", [failed("ValueError", "shown as it is")] * 2)
    found = await error_groups(engine, JobFilter())
    assert [group.count for group in found.groups] == [2, 2, 1]

    def shown(job: headrace.Job) -> str:
        return "cannot log in with [redacted]" if job.id in ids else job.error or ""

    found = await errors.hide(engine, found, shown)
    [login, other] = found.groups
    assert (login.count, login.hidden, login.message) == (3, True, "cannot log in with [redacted]")
    assert login.fingerprint == fingerprint("ValueError", login.message)
    assert sorted(login.job_ids) == sorted(ids)
    assert sum(login.minutes) == 3
    assert (other.count, other.hidden) == (2, False)
