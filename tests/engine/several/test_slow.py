"""A store that is slow, or that refuses what it is given, disturbs none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.engine.open import open_engine
from headrace.engine.several.engine import SeveralStores
from headrace.errors import EngineUnavailable, StorageFull, StoreUnavailable
from headrace.model.job import ClaimedJob, Inserted, JobFilter
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from headrace.model.views import Exchange
from tests.engine.several.conftest import Trio
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


async def test_outcomes_of_a_call_that_failed_everywhere_are_sent_again_and_again(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await a_worker(stores)
    for queue in ("mail", "default"):
        await enqueue(stores, queue=queue)
    jobs = await claim(stores, worker, 4)
    outcomes = [Settlement(job.id, job.token, Completed()) for job in jobs]
    with monkeypatch.context() as patched:
        for queue in ("mail", "default", "media-x"):
            Held(stores, queue, patched).error = EngineUnavailable("gone")
            patched.setattr(stores.home_of(queue).engine, "now", _gone)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await stores.exchange(outcomes, worker_id=worker, limit=1)
    await until(lambda: not stores.missing, "all stores answer again")
    assert (await stores.exchange(outcomes, worker_id=worker, limit=1)).refused == ()
    assert {await status(stores, job.id) for job in jobs} == {Status.COMPLETED}


async def _gone() -> float:
    raise EngineUnavailable("gone")


async def test_jobs_that_others_have_leased_are_not_lost_with_the_error_of_one(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[ClaimedJob] = []
    end = await stores.listen(lambda: None, lambda _: None, lambda _, jobs: handed.extend(jobs))
    worker = await a_worker(stores)
    here = await enqueue(stores, queue="default")
    Held(stores, "mail", monkeypatch).error = StorageFull("no room")
    with pytest.raises(StorageFull):
        await claim(stores, worker, 6)
    assert [job.id for job in handed] == [here]
    end()


@pytest.mark.parametrize("how", ["close", "retire"])
async def test_outcomes_on_their_way_arrive_before_a_worker_or_its_program_ends(
    how: str, stores: SeveralStores, trio: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = trio.engine()
    await engine.open()
    end = await engine.listen(lambda: None, lambda _: None, lambda _, jobs: None)
    worker = await a_worker(engine)
    for queue in ("mail", "default"):
        await enqueue(engine, queue=queue)
    jobs = await claim(engine, worker, 4)
    held = Held(engine, "mail", monkeypatch)
    await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
    assert engine.home_of("mail").late is not None
    ending = asyncio.ensure_future(engine.close() if how == "close" else engine.retire(worker))
    asyncio.get_running_loop().call_later(0.1, held.open.set)
    await ending
    assert {await status(stores, job.id) for job in jobs} == {Status.COMPLETED}
    end()
    await engine.close()


async def test_a_store_that_fails_oddly_is_asked_until_it_answers(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = stores.home_of("mail")

    async def odd() -> float:
        raise ValueError("what is this")

    with monkeypatch.context() as patched:
        patched.setattr(mail.engine, "now", odd)
        mail.lost(EngineUnavailable("gone"))
        await until(lambda: "what is this" in str(mail.away), "that it is asked")
    await until(lambda: mail.away is None, "that it answers")


async def test_jobs_in_lanes_of_a_queue_that_was_moved_run_and_are_told(
    stores: SeveralStores, trio: Trio
) -> None:
    job = a_job(queue="mail", lane="l")
    await stores.insert([job])
    moved = open_engine(trio.url, stores={**trio.stores, "mail": trio.stores["media-*"],
                                          "other": trio.stores["mail"]})  # fmt: skip
    await moved.open()
    [finding] = [each for each in (await moved.report()).findings if each.kind == "engine.moved"]
    assert finding.name == "mail"
    assert "its new jobs go to" in finding.detail
    assert [each for each in (await stores.report()).findings if each.kind == "engine.moved"] == []
    worker = await a_worker(moved)
    assert [each.id for each in await claim(moved, worker, 3)] == [job.id]
    await moved.close()


async def test_a_full_store_is_named_and_what_others_have_stored_is_told(
    stores: SeveralStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> list[Inserted]:
        raise StorageFull("no room")

    monkeypatch.setattr(stores.default.engine, "insert", full)
    jobs = [a_job(queue=queue) for queue in ("default", "mail")]
    with pytest.raises(StoreUnavailable, match=r"'default'.*no room; 1 of 2 jobs") as error:
        await stores.insert(jobs)
    assert error.value.stored == (jobs[1].id,)


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
