"""One of the stores is away: the others go on, it is told, nothing is lost, and it comes back."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import msgspec
import pytest

import headrace
from headrace.config import Settings
from headrace.engine.several.engine import SeveralStores
from headrace.engine.several.store.member import LONGEST_REPLY
from headrace.enqueue import BATCH_JOBS
from headrace.errors import EngineUnavailable, StoreUnavailable
from headrace.model.durable.writes import Note
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from headrace.model.worker import WorkerInfo, WorkerStats
from tests.engine.several.conftest import Trio
from tests.support.processes import until
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status


async def until_back(stores: SeveralStores) -> None:
    await until(lambda: not stores.missing, "all stores answer again")


def stores_of(app: headrace.App) -> SeveralStores:
    assert isinstance(app.engine, SeveralStores)
    return app.engine


async def test_the_others_go_on_and_views_say_which_one_is_missing(
    stores: SeveralStores, trio: Trio
) -> None:
    worker = await a_worker(stores)
    gone = await enqueue(stores, queue="mail")
    [here, there] = [await enqueue(stores, queue=queue) for queue in ("default", "media-x")]
    trio.postgres.kill()
    jobs = await claim(stores, worker, 5)
    assert {job.id for job in jobs} == {here, there}
    for job in jobs:
        assert await complete(stores, job)
    page = await stores.list_jobs(JobFilter())
    assert {job.id for job in page.jobs} == {here, there}
    assert not (await stores.count_jobs(JobFilter())).complete
    [missing] = stores.missing
    assert missing.name == "mail"
    assert "does not answer" in missing.detail
    assert missing in (await stores.report()).findings
    with pytest.raises(StoreUnavailable, match="the store 'mail'"):
        await stores.get([gone])
    with pytest.raises(StoreUnavailable, match="the store 'mail'"):
        await enqueue(stores, queue="mail")
    # A job that nobody knows may be there.
    with pytest.raises(StoreUnavailable, match="may be in one that does not"):
        await stores.get([a_job().id])
    due = await stores.promote_due(10)
    assert due.moved == 0
    trio.postgres.start()
    await until_back(stores)
    assert await status(stores, gone) is Status.PENDING
    [job] = await claim(stores, worker, 5)
    assert job.id == gone


async def test_an_outcome_for_a_store_that_is_away_is_recorded_when_it_is_back(
    stores: SeveralStores, trio: Trio
) -> None:
    worker = await a_worker(stores)
    ids = [await enqueue(stores, queue=queue) for queue in ("mail", "default")]
    jobs = await claim(stores, worker, 5)
    trio.postgres.kill()
    outcomes = [Settlement(job.id, job.token, Completed(b"1")) for job in jobs]
    assert (await stores.exchange(outcomes, worker_id=worker, limit=5)).refused == ()
    assert await status(stores, ids[1]) is Status.COMPLETED
    assert (await stores.write_progress([])) == ()
    trio.postgres.start()
    # Whoever looks for lost claims must not find this one: it would run twice.
    while stores.missing:
        assert await stores.claimed_by(worker) == []
        await asyncio.sleep(0.01)
    assert await stores.claimed_by(worker) == []
    assert await status(stores, ids[0]) is Status.COMPLETED


async def test_if_none_answers_the_call_raises_and_outcomes_are_not_recorded_twice(
    stores: SeveralStores, trio: Trio
) -> None:
    worker = await a_worker(stores)
    await enqueue(stores, queue="mail")
    [job] = await claim(stores, worker)
    for member in stores.members:
        member.lost(EngineUnavailable("all are away"))
    outcome = Settlement(job.id, job.token, Completed())
    with pytest.raises(EngineUnavailable):
        await stores.exchange([outcome], worker_id=worker, limit=1)
    await until_back(stores)
    assert (await stores.exchange([outcome])).refused == ()
    assert await status(stores, job.id) is Status.COMPLETED


async def test_notes_of_the_others_are_written_and_the_error_names_the_rest(
    stores: SeveralStores, trio: Trio
) -> None:
    worker = await a_worker(stores)
    [there, here] = [await enqueue(stores, queue=queue) for queue in ("mail", "default")]
    tokens = {job.id: job.token for job in await claim(stores, worker, 5)}
    trio.postgres.kill()
    notes = [Note(job_id, tokens[job_id], progress=50.0) for job_id in (there, here)]
    with pytest.raises(StoreUnavailable) as error:
        await stores.write_progress(notes)
    assert (error.value.left, error.value.refused) == ((there,), ())
    [job] = await stores.get([here])
    assert job.progress == 50.0


async def test_jobs_of_several_stores_in_one_call_say_which_were_stored(
    stores: SeveralStores, trio: Trio
) -> None:
    trio.postgres.kill()
    jobs = [a_job(queue=queue) for queue in ("media-x", "mail", "default")]
    with pytest.raises(StoreUnavailable, match=r"\d of 3 jobs were stored.*'mail'") as error:
        await stores.insert(jobs)
    assert set(error.value.stored) <= {jobs[0].id, jobs[2].id}
    assert error.value.stored
    trio.postgres.start()
    await until_back(stores)
    again = await stores.insert(jobs)
    assert [each.id for each in again if not each.created] == [
        job.id for job in jobs if job.id in error.value.stored
    ]
    assert len((await stores.list_jobs(JobFilter())).jobs) == 3


async def test_a_program_starts_while_one_is_away_and_uses_it_when_it_is_back(trio: Trio) -> None:
    trio.redis.kill()
    engine = trio.engine()
    await engine.open()
    worker = await a_worker(engine)
    signals: list[None] = []
    end = await engine.listen(lambda: signals.append(None), lambda _: None)
    job_id = await enqueue(engine, queue="mail")
    assert [job.id for job in await claim(engine, worker, 5)] == [job_id]
    trio.redis.start()
    await until_back(engine)
    signals.clear()
    other = await enqueue(engine, queue="media-x")
    await until(lambda: signals, "a signal of the store that was away")
    assert [job.id for job in await claim(engine, worker, 5)] == [other]
    end()
    await engine.close()


async def test_a_lease_that_lapsed_in_one_store_costs_nothing_in_the_others(
    stores: SeveralStores, trio: Trio
) -> None:
    worker = await a_worker(stores)
    [there, _] = [await enqueue(stores, queue=queue) for queue in ("mail", "default")]
    assert len(await claim(stores, worker, 5)) == 2
    keeper = stores.keeper(worker, 30.0)
    renewal = await asyncio.to_thread(keeper.renew, WorkerStats())
    assert (renewal.alive, renewal.lost) == (True, ())
    # Another process has found that the lease in this store has lapsed.
    await stores.home_of("mail").engine.retire(worker)
    renewal = await asyncio.to_thread(keeper.renew, WorkerStats())
    assert (renewal.alive, renewal.lost) == (True, (there,))
    mail = stores.home_of("mail")
    await until(lambda: mail.workers.get(worker, worker) != worker, "registered anew there")
    for lost in await stores.take_lost(10):
        await stores.exchange([Settlement(lost.job.id, lost.job.token, Completed())])
    again = await enqueue(stores, queue="mail")
    assert [job.id for job in await claim(stores, worker, 5)] == [again]
    renewal = await asyncio.to_thread(keeper.renew, WorkerStats())
    assert (renewal.alive, renewal.lost) == (True, ())
    await asyncio.to_thread(keeper.close)
    assert [each.alive for each in await stores.workers() if each.alive] == [True]


async def test_a_store_that_was_away_knows_which_tasks_a_worker_has_learned_meanwhile(
    stores: SeveralStores, trio: Trio
) -> None:
    info = WorkerInfo(id=new_id(), name="w", host="here", pid=1, version="0", tasks=("other",))
    await stores.register(info, 30.0)
    trio.postgres.kill()
    await stores.know(msgspec.structs.replace(info, tasks=("learned",)))
    trio.postgres.start()
    await until_back(stores)

    async def told() -> bool:
        [worker] = await stores.home_of("mail").engine.workers()
        return worker.tasks == ("learned",)

    await until(told, "the tasks are known there, too")


async def test_what_was_stored_of_many_batches_is_told(trio: Trio) -> None:
    app = headrace.App(settings=Settings(url=trio.url, stores=trio.stores))

    @app.task
    async def work() -> None: ...

    async with app:
        trio.postgres.kill()
        jobs = [work.options(queue="default").job() for _ in range(BATCH_JOBS + 5)]
        jobs.append(work.options(queue="mail").job())
        with pytest.raises(StoreUnavailable) as error:
            await app.enqueue_many(jobs)
        there = await stores_of(app).default.engine.get([job.id for job in jobs[:-1]])
        assert list(error.value.stored) == [job.id for job in there]
        assert len(there) in (BATCH_JOBS, BATCH_JOBS + 5)


async def test_producers_beside_one_whose_store_is_away_are_not_disturbed(trio: Trio) -> None:
    app = headrace.App(settings=Settings(url=trio.url, stores=trio.stores))
    tasks = []
    for queue in ("mail", "default", "media-x"):

        @app.task(name=queue, queue=queue)
        async def task() -> None: ...

        tasks += [task] * 3
    async with app:
        trio.postgres.kill()
        for _ in range(3):
            # All of one moment are sent to the engine together.
            found = await asyncio.gather(
                *(each.enqueue() for each in tasks), return_exceptions=True
            )
            failed = [isinstance(each, StoreUnavailable) for each in found]
            assert failed == [True] * 3 + [False] * 6, found
        assert len((await app.list(JobFilter())).jobs) == 18


async def test_a_worker_goes_on_while_a_store_is_killed_and_loses_nothing(
    trio: Trio,
) -> None:
    settings = Settings(url=trio.url, stores=trio.stores, lease_seconds=5)
    app = headrace.App(settings=settings)
    runs: dict[str, int] = {}

    @app.task(queue="mail")
    async def mail(name: str) -> None:
        runs[name] = runs.get(name, 0) + 1

    @app.task
    async def here(name: str) -> None:
        runs[name] = runs.get(name, 0) + 1

    async with app, headrace.JobOrchestrator(app) as worker:
        await mail.enqueue("mail-before")
        await until(lambda: runs.get("mail-before"), "the first mail")
        trio.postgres.kill()
        began = time.monotonic()
        for number in range(20):
            name = f"here-{number}"
            await here.enqueue(name)
            await until(partial(runs.get, name), "a job beside the store that is away")
        # Far less than one wait for the store that is away would take, each time.
        assert time.monotonic() - began < 2 * LONGEST_REPLY
        assert worker.healthy
        assert [each.name for each in (await app.summary()).findings if each.kind == "engine.store"]
        trio.postgres.start()
        engine = app.engine
        assert isinstance(engine, SeveralStores)
        await until_back(engine)
        await mail.enqueue("mail-after")
        await until(lambda: runs.get("mail-after"), "a mail after it has come back")

        async def all_completed() -> bool:
            page = await app.list(JobFilter(statuses=(Status.COMPLETED,)))
            return len(page.jobs) == len(runs) == 22

        await until(all_completed, "all outcomes are recorded")
        assert set(runs.values()) == {1}
