"""The same verbs for code without a loop."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import headrace
import headrace.sync
from headrace.errors import HeadraceError, JobConflict, JobNotFound
from headrace.model.ids import new_id
from tests.app.conftest import make_app


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
