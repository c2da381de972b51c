"""Jobs whose task a worker does not know: left for those that know it, and in nobody's way."""

from __future__ import annotations

import asyncio

import msgspec

from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob, JobFilter
from headrace.model.outcome import Reserved, Settlement
from headrace.model.status import Status
from headrace.model.worker import WorkerInfo
from tests.engine.conftest import Opener
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle, status, the_job


async def leave(engine: Engine, worker: str, limit: int = 1) -> list[ClaimedJob]:
    """Claim jobs and leave all of them to others."""
    jobs = await claim(engine, worker, limit)
    answer = await engine.exchange([Settlement(each.id, each.token, Reserved()) for each in jobs])
    assert answer.refused == ()
    return jobs


async def test_a_reserved_job_is_offered_only_to_workers_that_know_its_task(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=("mine",))
    job_id = await enqueue(engine, task="theirs")
    assert [each.id for each in await leave(engine, stranger)] == [job_id]
    assert await claim(engine, stranger, 10) == []
    assert await status(engine, job_id) is Status.PENDING
    one_that_knows = await a_worker(engine, "knows", tasks=("other", "theirs"))
    [job] = await claim(engine, one_that_knows, 10)
    assert (job.id, job.attempt, job.token) == (job_id, 1, 2)
    assert await complete(engine, job)
    assert await status(engine, job_id) is Status.COMPLETED


async def test_a_worker_that_names_no_tasks_knows_all(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    job_id = await enqueue(engine, task="theirs")
    await leave(engine, stranger)
    assert await claim(engine, stranger) == []
    anyone = await a_worker(engine, "anyone")
    assert [each.id for each in await claim(engine, anyone)] == [job_id]


async def test_a_worker_that_has_found_nothing_is_offered_it_later(engine: Engine) -> None:
    """What a worker may claim is found out again whenever a job is reserved."""
    stranger = await a_worker(engine, "stranger", tasks=("mine",))
    knows = await a_worker(engine, "knows", tasks=("other", "theirs"))
    anyone = await a_worker(engine, "anyone")
    for worker in (knows, anyone, knows):
        for idle in (stranger, knows, anyone):
            assert await claim(engine, idle, 10) == []
        job_id = await enqueue(engine, task="theirs")
        assert [each.id for each in await leave(engine, stranger)] == [job_id]
        assert await claim(engine, stranger, 10) == []
        assert [each.id for each in await claim(engine, worker, 10)] == [job_id]


async def test_a_second_reserved_task_is_found_beside_the_first(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    knows = await a_worker(engine, "knows", tasks=("a", "b"))
    ids = []
    for task, queue in (("a", "one"), ("b", "one"), ("a", "two"), ("a", "one")):
        ids.append(await enqueue(engine, task=task, queue=queue))
        await leave(engine, stranger)
        assert await claim(engine, knows, 10, queues=["none"]) == []
    assert [each.id for each in await claim(engine, knows, 1)] == ids[:1]
    assert [each.id for each in await claim(engine, knows, 10, queues=["two"])] == ids[2:3]
    assert [each.id for each in await claim(engine, knows, 10)] == [ids[1], ids[3]]


async def test_a_job_that_is_reserved_alone_leaves_the_others_of_its_task(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    ids = [await enqueue(engine, task="theirs") for _ in range(3)]
    [job] = await claim(engine, stranger)
    assert await settle(engine, job, Reserved(alone=True))
    assert [each.id for each in await claim(engine, stranger, 10)] == ids[1:]
    knows = await a_worker(engine, "knows", tasks=("theirs",))
    assert [each.id for each in await claim(engine, knows, 10)] == ids[:1]


async def test_no_attempt_is_spent_and_no_error_kept(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=())
    job_id = await enqueue(engine, task="theirs", max_attempts=1)
    await leave(engine, stranger)
    job = await the_job(engine, job_id)
    assert (job.attempt, job.error, job.worker, job.started_at) == (0, None, None, None)


async def test_jobs_behind_it_are_claimed_in_the_same_exchange(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=("mine",))
    await enqueue(engine, task="theirs")
    mine = await enqueue(engine, task="mine")
    [theirs] = await claim(engine, stranger)
    answer = await engine.exchange(
        [Settlement(theirs.id, theirs.token, Reserved())], worker_id=stranger, limit=5
    )
    assert [each.id for each in answer.jobs] == [mine]


async def test_priority_and_arrival_count_over_both_lines(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    early = await enqueue(engine, task="a")
    urgent = await enqueue(engine, task="b", priority=5)
    await leave(engine, stranger, 2)
    late = await enqueue(engine, task="a")
    urgent_late = await enqueue(engine, task="a", priority=5)
    knows = await a_worker(engine, "knows", tasks=("a", "b"))
    claimed = [each.id for each in await claim(engine, knows, 3)]
    assert claimed == [urgent, urgent_late, early]
    assert [each.id for each in await claim(engine, knows, 3)] == [late]


async def test_only_known_tasks_come_out_of_several_reserved_ones(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    tasks = ("a", "aa", "b")
    ids = {task: await enqueue(engine, task=task) for task in tasks}
    other = await enqueue(engine, task="a", queue="other")
    assert len(await leave(engine, stranger, 10)) == 4
    knows = await a_worker(engine, "knows", tasks=("aa",))
    assert [each.id for each in await claim(engine, knows, 10)] == [ids["aa"]]
    third = await a_worker(engine, "third", tasks=("a",))
    claimed = await claim(engine, third, 10, queues=["other"])
    assert [each.id for each in claimed] == [other]
    assert [each.id for each in await claim(engine, third, 10)] == [ids["a"]]


async def test_a_paused_queue_hands_out_no_reserved_jobs(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=())
    job_id = await enqueue(engine, task="theirs")
    await leave(engine, stranger)
    await engine.pause("default", True)
    knows = await a_worker(engine, "knows")
    assert await claim(engine, knows) == []
    await engine.pause("default", False)
    assert [each.id for each in await claim(engine, knows)] == [job_id]


async def test_its_place_in_the_lane_is_kept(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=("mine",))
    head = await enqueue(engine, task="theirs", lane="l")
    behind = await enqueue(engine, task="mine", lane="l")
    await leave(engine, stranger)
    assert await claim(engine, stranger, 5) == []
    [lane] = await engine.lanes()
    assert (lane.holders, lane.waiting) == ((head,), 1)
    knows = await a_worker(engine, "knows", tasks=("theirs",))
    [job] = await claim(engine, knows, 5)
    assert job.id == head
    await complete(engine, job)
    assert [each.id for each in await claim(engine, stranger, 5)] == [behind]


async def test_a_better_job_of_its_lane_takes_its_place(engine: Engine) -> None:
    stranger = await a_worker(engine, "stranger", tasks=("mine",))
    beaten = await enqueue(engine, task="theirs", lane="l")
    await leave(engine, stranger)
    better = await enqueue(engine, task="mine", lane="l", priority=1)
    [job] = await claim(engine, stranger, 5)
    assert job.id == better
    assert await engine.audit() == []
    await complete(engine, job)
    anyone = await a_worker(engine, "anyone")
    assert [each.id for each in await claim(engine, anyone, 5)] == [beaten]


async def test_it_can_be_cancelled_and_its_lane_goes_on(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=("mine",))
    head = await enqueue(engine, task="theirs", lane="l")
    behind = await enqueue(engine, task="mine", lane="l")
    alone = await enqueue(engine, task="theirs")
    assert len(await leave(engine, stranger, 2)) == 2
    assert await engine.cancel([head, alone]) == {head: True, alone: True}
    assert [each.id for each in await claim(engine, stranger, 5)] == [behind]
    assert [view.reserved for view in await engine.queues()] == [{}]


async def test_a_job_that_was_asked_to_stop_is_cancelled_instead(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=())
    job_id = await enqueue(engine, task="theirs")
    [job] = await claim(engine, stranger)
    assert await engine.cancel([job_id], "not needed") == {job_id: False}
    assert await settle(engine, job, Reserved())
    seen = await the_job(engine, job_id)
    assert (seen.status, seen.error) == (Status.CANCELLED, "not needed")


async def test_a_stale_token_reserves_nothing(engine: Engine) -> None:
    worker = await a_worker(engine, tasks=("theirs",))
    await enqueue(engine, task="theirs")
    [job] = await leave(engine, worker)
    [again] = await claim(engine, worker)
    assert not await settle(engine, job, Reserved())
    assert await complete(engine, again)


async def test_it_is_counted_listed_and_its_age_is_told(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=())
    first = await enqueue(engine, task="a")
    second = await enqueue(engine, task="b")
    third = await enqueue(engine, task="a")
    await leave(engine, stranger, 3)
    engine.clock.advance(60)
    fourth = await enqueue(engine, task="a")
    [queue] = await engine.queues()
    assert (queue.ready, queue.reserved) == (4, {"a": 2, "b": 1})
    assert queue.oldest_age is not None
    assert queue.oldest_age > 59
    page = await engine.list_jobs(JobFilter(statuses=(Status.PENDING,)))
    assert [each.id for each in page.jobs] == [fourth, third, second, first]


async def test_one_that_comes_back_from_a_worker_is_offered_to_all_again(engine: Engine) -> None:
    """Which worker knows its task may have changed since."""
    stranger = await a_worker(engine, "stranger", tasks=())
    job_id = await enqueue(engine, task="theirs")
    await leave(engine, stranger)
    knows = await a_worker(engine, "knows")
    [job] = await claim(engine, knows)
    await engine.retire(knows)
    await engine.exchange([Settlement(job.id, job.token, Reserved())])
    assert await claim(engine, stranger) == []
    other = await a_worker(engine, "other")
    assert [each.id for each in await claim(engine, other)] == [job_id]


async def test_those_behind_it_of_the_same_task_are_reserved_with_it(engine: Engine) -> None:
    """A backlog of foreign jobs in front is passed in few steps, however short the claims are."""
    stranger = await a_worker(engine, "stranger", tasks=("mine",))
    await engine.insert([a_job(task="theirs") for _ in range(500)])
    await enqueue(engine, task="others")
    mine = await enqueue(engine, task="mine")
    await leave(engine, stranger, 5)
    claimed = await claim(engine, stranger, 2)
    assert [each.task for each in claimed] == ["others", "mine"]
    assert claimed[1].id == mine
    [queue] = await engine.queues()
    assert queue.reserved == {"theirs": 500}
    knows = await a_worker(engine, "knows", tasks=("theirs",))
    assert len(await claim(engine, knows, 600)) == 500


async def test_those_of_the_same_task_in_other_queues_are_left_alone(engine: Engine) -> None:
    stranger = await a_worker(engine, tasks=())
    await enqueue(engine, task="theirs", queue="a")
    elsewhere = await enqueue(engine, task="theirs", queue="b")
    [job] = await claim(engine, stranger, 1, queues=["a"])
    await settle(engine, job, Reserved())
    assert {view.name: view.reserved for view in await engine.queues()} == {
        "a": {"theirs": 1},
        "b": {},
    }
    assert [each.id for each in await claim(engine, stranger, 5)] == [elsewhere]


async def test_others_hear_of_it(engine: Engine, open_another: Opener) -> None:
    other = await open_another()
    heard = asyncio.Event()
    stranger = await a_worker(engine, tasks=("mine",))
    await enqueue(engine, task="theirs")
    [job] = await claim(engine, stranger)
    stop = await other.listen(heard.set, lambda _: None)
    try:
        heard.clear()
        # Its own claim finds nothing more, and yet there is something for others.
        await engine.exchange(
            [Settlement(job.id, job.token, Reserved())], worker_id=stranger, limit=10
        )
        await asyncio.wait_for(heard.wait(), 60)
    finally:
        stop()


async def test_what_workers_know_is_told(engine: Engine) -> None:
    await a_worker(engine, "anyone")
    await a_worker(engine, "knows", tasks=("b", "a"))
    workers = {worker.name: worker.tasks for worker in await engine.workers()}
    assert workers == {"anyone": None, "knows": ("b", "a")}


async def test_a_worker_that_has_learned_a_task_is_offered_its_jobs(engine: Engine) -> None:
    info = WorkerInfo(
        id=new_id(), name="slow", host="here", pid=1, version="0", queues=("default",), tasks=()
    )
    await engine.register(info, 30.0)
    job_id = await enqueue(engine, task="new")
    await leave(engine, info.id)
    assert await claim(engine, info.id) == []
    await engine.know(msgspec.structs.replace(info, tasks=("new",)))
    [seen] = await engine.workers()
    assert (seen.name, seen.queues, seen.tasks, seen.alive) == (
        "slow",
        ("default",),
        ("new",),
        True,
    )
    [job] = await claim(engine, info.id)
    assert job.id == job_id


async def test_what_a_dead_worker_knows_is_of_no_interest(engine: Engine) -> None:
    info = WorkerInfo(id=new_id(), name="gone", host="here", pid=1, version="0", tasks=())
    await engine.register(info, 30.0)
    await a_worker(engine, "gone")
    await engine.know(msgspec.structs.replace(info, tasks=("new",)))
    assert sorted(worker.alive for worker in await engine.workers()) == [False, True]
    assert all(worker.tasks != ("new",) for worker in await engine.workers())
