"""A store that is slow, or that refuses what it is given, disturbs none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.engine.several.engine import SeveralStores
from headrace.model.job import ClaimedJob, JobFilter
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from headrace.model.views import Exchange
from tests.support.processes import until
from tests.support.verbs import a_job, a_worker, claim, enqueue, status


class Held:
    """Exchanges with one store wait until they are let go, or raise."""

    def __init__(self, stores: SeveralStores, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = stores.home_of(queue).engine
        self.open = asyncio.Event()
        self.error: Exception | None = None
        real = engine.exchange

        async def exchange(settlements: Sequence[Settlement], **options: Any) -> Exchange:
            if self.error is not None:
                raise self.error
            await self.open.wait()
            return await real(settlements, **options)

        monkeypatch.setattr(engine, "exchange", exchange)


async def test_a_slow_store_is_not_waited_for_and_its_jobs_come_later(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[ClaimedJob] = []
    end = await stores.listen(lambda: None, lambda _: None, lambda _, jobs: handed.extend(jobs))
    worker = await a_worker(stores)
    [there, here] = [await enqueue(stores, queue=queue) for queue in ("mail", "default")]
    held = Held(stores, "mail", monkeypatch)
    [mine] = await claim(stores, worker, 4)
    assert mine.id == here
    # Nothing more is claimed there meanwhile.
    assert await claim(stores, worker, 4) == []
    held.open.set()
    await until(lambda: handed, "the job of the slow store")
    assert [job.id for job in handed] == [there]
    await until(lambda: stores.home_of("mail").late is None, "the late reply")
    held.open.clear()
    outcomes = [Settlement(job.id, job.token, Completed()) for job in (mine, *handed)]
    assert (await stores.exchange(outcomes)).refused == ()
    assert await status(stores, here) is Status.COMPLETED
    # It is on its way: whoever looks for lost claims must not find it.
    assert await stores.claimed_by(worker) == []
    held.open.set()

    async def recorded() -> bool:
        return await status(stores, there) is Status.COMPLETED

    await until(recorded, "the outcome in the slow store")
    end()


async def test_outcomes_that_were_recorded_are_not_refused_when_all_are_sent_again(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await a_worker(stores)
    for queue in ("mail", "default"):
        await enqueue(stores, queue=queue)
    jobs = await claim(stores, worker, 4)
    outcomes = [Settlement(job.id, job.token, Completed()) for job in jobs]
    with monkeypatch.context() as patched:
        held = Held(stores, "mail", patched)
        held.error = ValueError("one of them is poisoned")
        with pytest.raises(ValueError, match="poisoned"):
            await stores.exchange(outcomes)
    assert (await stores.exchange(outcomes)).refused == ()
    assert {await status(stores, job.id) for job in jobs} == {Status.COMPLETED}


async def test_a_bounded_search_leaves_out_no_job_of_any_store(stores: SeveralStores) -> None:
    wanted = []
    # The matches of one store are all newer than those of the other.
    for queue in ("mail", "default"):
        for number in range(12):
            task = "rare" if number % 3 == 0 else "work"
            job = a_job(queue=queue, task=task)
            await stores.insert([job])
            wanted += [job.id] if task == "rare" else []
    found: list[str] = []
    cursor: str | None = None
    for _ in range(100):
        page = await stores.list_jobs(JobFilter(tasks=("rare",)), cursor=cursor, limit=5, look=2)
        found += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == wanted[::-1]
