"""Jobs are in the store of their queue, families in that of their parent; views show all."""

from __future__ import annotations

import pytest

from headrace.engine.open import open_engine
from headrace.engine.several.engine import SeveralStores
from headrace.engine.several.store.routes import DEFAULT, Routes
from headrace.errors import InvalidInput, InvalidSetting, RecordConflict
from headrace.model.job import JobFilter
from headrace.model.limits.rate import Rate
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from headrace.model.views import RecordChange
from tests.engine.several.conftest import Trio
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status, the_job

QUEUES = ("default", "mail", "media-video", "media-sound")


def where(stores: SeveralStores, queue: str) -> str:
    return stores.home_of(queue).engine.name


def test_the_whole_name_counts_before_the_longest_beginning() -> None:
    routes = Routes(("media-*", "media-video-*", "media-video-4k", "mail"))
    found = [
        routes.pattern_of(queue)
        for queue in ("media-video-4k", "media-video-8k", "media-x", "mail", "mails", "media")
    ]
    assert found == ["media-video-4k", "media-video-*", "media-*", "mail", DEFAULT, DEFAULT]


@pytest.mark.parametrize("pattern", ["*", "", "a b", "-x", "a*b"])
def test_a_pattern_that_names_no_queue_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidSetting, match="pattern"):
        Routes((pattern,))


def test_stores_in_memory_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="in the memory of a process"):
        open_engine("sqlite:///a.db", stores={"mail": "sqlite://"})


def test_one_store_is_no_composite() -> None:
    assert type(open_engine("sqlite:///a.db", stores={})).__name__ == "SqliteEngine"


async def test_each_queue_is_in_its_store_and_views_show_all(stores: SeveralStores) -> None:
    ids = [await enqueue(stores, queue=queue, args=b"{}") for queue in QUEUES]
    for queue, job_id in zip(QUEUES, ids, strict=True):
        for member in stores.members:
            there = await member.engine.get([job_id])
            assert bool(there) == (member is stores.home_of(queue))
    assert [where(stores, queue) for queue in QUEUES] == ["sqlite", "postgres", "redis", "redis"]
    assert [queue.name for queue in await stores.queues()] == sorted(QUEUES)
    page = await stores.list_jobs(JobFilter(), limit=3)
    rest = await stores.list_jobs(JobFilter(), limit=3, cursor=page.cursor)
    assert [job.id for job in (*page.jobs, *rest.jobs)] == ids[::-1]
    assert rest.cursor is None
    count = await stores.count_jobs(JobFilter())
    assert (count.count, count.complete) == (4, True)


async def test_a_job_is_found_by_another_process_that_does_not_know_its_queue(
    stores: SeveralStores, trio: Trio
) -> None:
    job_id = await enqueue(stores, queue="mail")
    other = trio.engine()
    await other.open()
    assert (await the_job(other, job_id)).queue == "mail"
    assert await other.cancel([job_id]) == {job_id: True}
    assert await status(stores, job_id) is Status.CANCELLED
    await other.close()


async def test_a_worker_is_given_jobs_of_all_stores_fairly(stores: SeveralStores) -> None:
    worker = await a_worker(stores)
    for queue in ("default", "mail", "media-x"):
        await stores.insert([a_job(queue=queue) for _ in range(20)])
    jobs = await claim(stores, worker, 9)
    assert sorted(job.queue for job in jobs) == ["default"] * 3 + ["mail"] * 3 + ["media-x"] * 3
    # Where one has no more, the others fill its share in the same call.
    assert len(await claim(stores, worker, 60)) == 51
    assert [each.name for each in await stores.workers()] == ["worker"]


async def test_one_place_is_filled_from_any_store(stores: SeveralStores) -> None:
    worker = await a_worker(stores)
    ids = {await enqueue(stores, queue=queue) for queue in QUEUES}
    found = set()
    for _ in QUEUES:
        [job] = await claim(stores, worker, 1)
        found.add(job.id)
        assert await complete(stores, job)
    assert found == ids
    assert await claim(stores, worker, 1) == []


async def test_children_and_followers_are_in_the_store_of_their_parent(
    stores: SeveralStores,
) -> None:
    worker = await a_worker(stores)
    parent = await enqueue(stores, queue="mail")
    child = a_job(queue="default", parent=parent, group="g")
    follower = a_job(queue="media-x")
    await stores.insert([child])
    [job] = await claim(stores, worker, queues=["mail"])
    done = Settlement(job.id, job.token, Completed(), follow=(follower,))
    assert (await stores.exchange([done])).refused == ()
    postgres = stores.home_of("mail").engine
    assert {each.id for each in await postgres.get([child.id, follower.id])} == {
        child.id,
        follower.id,
    }
    # Workers claim these queues in all stores.
    found = await claim(stores, worker, 5, queues=["default", "media-x"])
    assert {each.id for each in found} == {child.id, follower.id}


async def test_a_child_with_a_lane_of_another_store_is_refused(stores: SeveralStores) -> None:
    parent = await enqueue(stores, queue="mail")
    with pytest.raises(InvalidInput, match=r"lane 'l' of queue 'default'.*beside its parent"):
        await stores.insert([a_job(queue="default", lane="l", parent=parent)])
    assert await stores.insert([a_job(queue="mail", lane="l", parent=parent)])


async def test_a_job_fails_whose_follower_has_a_lane_of_another_store(
    stores: SeveralStores,
) -> None:
    worker = await a_worker(stores)
    await enqueue(stores, queue="mail")
    [job] = await claim(stores, worker)
    follow = (a_job(queue="default", lane="l"),)
    await stores.exchange([Settlement(job.id, job.token, Completed(), follow=follow)])
    failed = await the_job(stores, job.id)
    assert failed.status is Status.FAILED
    assert "lane 'l' of queue 'default'" in (failed.error or "")


async def test_a_key_belongs_to_its_store(stores: SeveralStores) -> None:
    one = await enqueue(stores, queue="mail", key="k")
    assert await enqueue(stores, queue="mail", key="k") == one
    # The same task and key in a queue of another store is another job: this is what is lost.
    assert await enqueue(stores, queue="default", key="k") != one


async def test_a_record_is_in_the_default_store_and_guards_jobs_of_others(
    stores: SeveralStores,
) -> None:
    change = RecordChange("schedule", "nightly", b"{}", version=0)
    job = a_job(queue="mail", key="nightly:1")
    [inserted] = await stores.insert([job], record=change)
    assert inserted.created
    assert (await stores.default.engine.record_get("schedule", "nightly")) is not None
    assert await stores.home_of("mail").engine.get([job.id])
    late = a_job(queue="mail", key="nightly:2")
    with pytest.raises(RecordConflict):
        await stores.insert([late], record=change)
    assert await stores.get([late.id]) == []


async def test_pauses_hold_everywhere_and_rates_in_the_store_of_the_queue(
    stores: SeveralStores,
) -> None:
    worker = await a_worker(stores)
    parent = await enqueue(stores, queue="mail")
    await stores.insert([a_job(queue="default"), a_job(queue="default", parent=parent)])
    await stores.pause("default", True)
    assert [job.queue for job in await claim(stores, worker, 5)] == ["mail"]
    await stores.pause("default", False)
    assert len(await claim(stores, worker, 5)) == 2
    await stores.set_rate("media-x", "l", Rate(1, 1.0, 1))
    [rate] = await stores.rates()
    assert (rate.queue, rate.lane) == ("media-x", "l")
