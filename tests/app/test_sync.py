"""The same verbs for code without a loop."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import headrace
import headrace.sync
from headrace.errors import (
    EngineUnavailable,
    HeadraceError,
    InvalidSetting,
    JobConflict,
    JobNotFound,
)
from headrace.model.ids import new_id
from tests.app.conftest import make_app
from tests.support.forks import forked, held_by_another

LIMIT = 20.0


def test_all_verbs_block_and_answer(url: str) -> None:
    with headrace.sync.wrap(make_app(url)) as jobs:
        add = jobs.app.find_task("add")
        job = jobs.enqueue(add.job(a=1, b=2))
        assert jobs.get(job.id).status is headrace.Status.PENDING
        assert jobs.enqueue("add", {"a": 3, "b": 4}, key="k").key == "k"
        assert len(jobs.enqueue_many(add.job(a=n, b=n) for n in range(10))) == 10
        assert len(jobs.list(limit=5).jobs) == 5
        assert jobs.why(job.id)
        assert jobs.cancel(job.id).status is headrace.Status.CANCELLED
        with pytest.raises(JobConflict):
            jobs.cancel(job.id)
        assert jobs.retry(job.id).status is headrace.Status.PENDING
        with pytest.raises(JobNotFound):
            jobs.get(new_id())
        with pytest.raises(headrace.ResultTimeout):
            jobs.result(job.id, timeout=0.05)


def test_schedules_are_declared_as_on_an_app() -> None:
    jobs = headrace.sync.App("sqlite://")

    @jobs.schedule("0 3 * * *", tz="Asia/Seoul")
    @jobs.task
    def nightly() -> None: ...

    jobs.add_schedule(nightly, "0 4 * * *", name="later")
    assert sorted(jobs.app.schedules.declared) == ["later", "nightly"]


def test_many_threads_share_it(url: str) -> None:
    with headrace.sync.wrap(make_app(url)) as jobs, ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: jobs.enqueue("add", {"a": n, "b": n}).id, range(100)))
        assert len(set(made)) == 100
        assert len(jobs.list(limit=1_000).jobs) == 100


def test_it_refuses_to_block_a_loop() -> None:
    jobs = headrace.sync.App("sqlite://")

    async def wrong() -> None:
        jobs.get(new_id())

    with pytest.raises(HeadraceError, match="would block this event loop"):
        asyncio.run(wrong())


def test_a_forked_child_starts_afresh(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    jobs.enqueue("add", {"a": 1, "b": 1})
    child = os.fork()
    if child == 0:
        try:
            jobs.enqueue("add", {"a": 2, "b": 2})
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, outcome = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(outcome) == 0
    assert len(jobs.list().jobs) == 2
    jobs.close()


def test_a_child_that_was_forked_while_others_were_at_it_starts_afresh(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    jobs.enqueue("add", {"a": 1, "b": 1})
    with held_by_another(jobs._thread._current().lock):
        assert forked(lambda: jobs.enqueue("add", {"a": 2, "b": 2})) == 0
    assert len(jobs.list().jobs) == 2
    jobs.close()


def test_a_child_does_not_wait_for_what_its_parent_was_storing(url: str) -> None:
    """The parent's enqueues are grouped behind one that is under way. The child has none of it."""
    jobs = headrace.sync.wrap(make_app(url))
    jobs.open()
    stored, original = threading.Event(), jobs.app.engine.insert

    async def held(*args: Any, **fields: Any) -> Any:
        await asyncio.to_thread(stored.wait, LIMIT)
        return await original(*args, **fields)

    jobs.app.engine.insert = held  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as threads:
        made = [threads.submit(jobs.enqueue, "add", {"a": n, "b": n}) for n in range(3)]
        eventually(lambda: len(jobs.app._enqueuer._waiting) == 2)
        assert forked(lambda: [jobs.enqueue("add", {"a": 9, "b": n}) for n in range(3)]) == 0
        stored.set()
        assert len({each.result(LIMIT).id for each in made}) == 3
    assert len(jobs.list().jobs) == 6
    jobs.close()


def test_a_child_closes_nothing_of_its_parent(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    jobs.open()
    assert forked(jobs.close) == 0
    assert forked(lambda: asyncio.run(jobs.app.close())) == 0
    assert jobs.enqueue("add", {"a": 1, "b": 1}).id == jobs.list().jobs[0].id
    jobs.close()


def test_closing_tells_those_who_wait_in_other_threads(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    job = jobs.enqueue("add", {"a": 1, "b": 1})
    with ThreadPoolExecutor(3) as threads:
        waiters = [threads.submit(jobs.result, job.id) for _ in range(3)]
        eventually(lambda: len(jobs.app._results._waiters.get(job.id, ())) == 3)
        jobs.close()
        for waiter in waiters:
            with pytest.raises(EngineUnavailable, match="closed while somebody waited for job"):
                waiter.result(LIMIT)
    assert jobs.get(job.id).status is headrace.Status.PENDING
    jobs.close()


def test_closing_ends_whatever_is_under_way(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    jobs.open()

    entered = threading.Event()

    async def for_ever(*_: Any, **__: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    setattr(jobs.app.engine, "list_jobs", for_ever)  # noqa: B010 - mypy knows what it takes
    with ThreadPoolExecutor(1) as threads:
        waiter = threads.submit(jobs.list)
        assert entered.wait(LIMIT)
        jobs.close()
        with pytest.raises(EngineUnavailable, match="closed while this was under way"):
            waiter.result(LIMIT)
    assert jobs.list().jobs == []
    jobs.close()


def test_it_can_be_closed_and_used_by_many_threads_at_once(url: str) -> None:
    """Nobody hangs, and what was acknowledged is there."""
    jobs = headrace.sync.wrap(make_app(url))

    def enqueue(number: int) -> str | None:
        try:
            return jobs.enqueue("add", {"a": number, "b": 1}).id
        except EngineUnavailable:
            return None

    with ThreadPoolExecutor(5) as threads:
        made = [threads.submit(enqueue, number) for number in range(60)]
        closed = [threads.submit(jobs.close) for _ in range(5)]
        ids = {job_id for each in made if (job_id := each.result(LIMIT)) is not None}
        for each in closed:
            each.result(LIMIT)
    assert ids <= {job.id for job in jobs.list(limit=100).jobs}
    jobs.close()


AT_EXIT = """
import sys, headrace.sync

jobs = headrace.sync.App(sys.argv[1])

@jobs.task
def work() -> None: ...

jobs.enqueue(work.job())
"""


def test_a_program_that_does_not_close_it_ends_in_silence(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", AT_EXIT, url],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("args", "options"), [({"a": 1}, {}), (None, {"key": "k"}), (None, {"delay": 5, "conn": None})]
)
def test_options_beside_a_job_that_has_its_own_are_refused(
    args: dict[str, Any] | None, options: dict[str, Any]
) -> None:
    jobs = headrace.sync.wrap(make_app("sqlite://"))
    job = jobs.app.find_task("add").job(a=1, b=2)
    with pytest.raises(InvalidSetting, match=r"got also (args|key|delay); make it by task.options"):
        jobs.enqueue(job, args, **options)  # type: ignore[call-overload]


def test_many_jobs_are_stored_with_their_options_and_progress() -> None:
    with headrace.sync.wrap(make_app("sqlite://")) as jobs:
        add = jobs.app.find_task("add")
        told: list[int] = []
        made = jobs.enqueue_many(
            (add.options(key=f"k{n}", delay=60).job(a=n, b=n) for n in range(3)),
            on_progress=told.append,
        )
        assert [(job.key, job.status) for job in made] == [(f"k{n}", "scheduled") for n in range(3)]
        assert told == [3]


async def test_a_handler_of_a_worker_uses_the_app_that_the_worker_runs(url: str) -> None:
    """As in the how-to for Flask: `jobs = headrace.sync.App()`, and the worker loads `jobs.app`."""
    jobs = headrace.sync.App(url)

    @jobs.task
    def child(n: int) -> int:
        return n

    @jobs.task(retries=0)
    def parent() -> list[Any]:
        with jobs:
            first = jobs.enqueue(child.job(n=1))
        more = jobs.enqueue_many([child.job(n=2), child.job(n=3)])
        jobs.enqueue("child", {"n": 4}, key="once")
        return [jobs.result(job.id, timeout=LIMIT) for job in (first, *more)]

    @jobs.task(retries=0)
    async def wrong() -> None:
        jobs.enqueue(child.job(n=1))

    async with jobs.app as app, headrace.JobOrchestrator(app, max_workers=3):
        job, bad = await parent.enqueue(), await wrong.enqueue()
        assert await app.result(job.id, timeout=LIMIT) == [1, 2, 3]
        with pytest.raises(headrace.JobFailed, match="would block this event loop"):
            await app.result(bad.id, timeout=LIMIT)
        assert not jobs._thread.started
    assert await asyncio.to_thread(lambda: len(jobs.list().jobs)) == 6
    await asyncio.to_thread(jobs.close)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_who_waits_on_the_loop_of_another_is_told_when_that_ends(url: str) -> None:
    jobs = headrace.sync.wrap(make_app(url))
    job = jobs.enqueue("add", {"a": 1, "b": 1})
    jobs.close()
    waiters: list[Future[Any]] = []

    async def program(threads: ThreadPoolExecutor) -> None:
        await jobs.app.open()
        waiters.append(threads.submit(jobs.result, job.id))
        await asyncio.to_thread(eventually, lambda: job.id in jobs.app._results._waiters)

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(program(threads))
        with pytest.raises(EngineUnavailable, match="the event loop that uses this App has ended"):
            waiters[0].result(LIMIT)
    asyncio.run(jobs.app.close())
    gc.collect()


def eventually(look: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)
