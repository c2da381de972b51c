"""Listing takes different ways through the store; each has to find the same jobs."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.redis import job_list
from headrace.engine.redis.engine import RedisEngine
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Retry,
    Settlement,
    TimedOut,
)
from headrace.model.status import Status
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim

PARENT = new_id()
FILTERS: list[dict[str, Any]] = [
    {},
    *({"statuses": (each,)} for each in Status),
    {"statuses": (Status.FAILED, Status.TIMEOUT, Status.CANCELLED)},
    {"statuses": (Status.FAILED, Status.RUNNING)},
    {"statuses": (Status.COMPLETED, Status.CANCELLED, Status.PENDING)},
    {"queues": ("q1", "q2"), "statuses": (Status.TIMEOUT, Status.FAILED)},
    {"tasks": ("t1",), "source": "api"},
    {"lane": "l"},
    {"key": "k7"},
    {"key": "k7", "tasks": ("t0", "t1", "t2")},
    {"key": "none", "tasks": ("t0",)},
    {"parent": PARENT},
    {"parent": PARENT, "group": "a"},
    {"parent": PARENT, "group": "none"},
    {"parent": PARENT, "group": "a", "statuses": (Status.FAILED, Status.PENDING)},
    {"parent": PARENT, "statuses": (Status.CANCELLED,), "queues": ("q1",)},
    {"group": "b"},
    {"error_types": ("ValueError",)},
    {"error_types": ("ValueError", "KeyError"), "statuses": (Status.FAILED,)},
    {"error_types": ("KeyError",), "parent": PARENT},
    {"worker": "worker"},
    {"worker": "worker", "statuses": (Status.PENDING, Status.COMPLETED)},
    {"worker": "none"},
    {"statuses": (Status.PENDING,), "worker": "worker", "parent": PARENT},
]
# How pages are asked for; a page whose work is bounded may be short.
WAYS: list[dict[str, Any]] = [
    {"limit": 4},
    {"limit": 200},
    {"limit": 10, "look": 4},
    {"limit": 3, "look": 9, "brief": True},
]


@pytest.mark.parametrize("few", [0, 30, 10_000], ids=["walked", "both", "collected"])
async def test_every_way_finds_the_same_jobs(
    redis_engine: RedisEngine, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(job_list, "_FEW", few)
    monkeypatch.setattr(job_list, "_STRETCH", 7)
    chance = random.Random(7)
    jobs = [
        a_job(
            queue=f"q{n % 3}",
            task=f"t{n % 3}",
            lane="l" if n % 10 == 0 else None,
            key=f"k{n}" if n % 7 == 0 else None,
            source="api" if n % 2 else "code",
            delay=60 if n % 11 == 0 else 0,
            parent=PARENT if n % 3 < 2 else None,
            group=(None, "a", "b")[n % 9 // 3] if n % 3 < 2 else None,
        )
        for n in range(150)
    ]
    chance.shuffle(jobs)
    await redis_engine.insert(jobs)
    worker = await a_worker(redis_engine)
    failure = Failure(type="KeyError", message="k")
    ends: list[Outcome] = [Completed(b"1"), Failed(failure), TimedOut(A_FAILURE), Cancelled()]
    ends += [Failed(A_FAILURE), Retry(A_FAILURE, 60)]
    for job in await claim(redis_engine, worker, 100):
        if chance.random() < 0.8:
            outcome = chance.choice(ends)
            await redis_engine.exchange([Settlement(job.id, job.token, outcome)])

    everything = await redis_engine.get(sorted((job.id for job in jobs), reverse=True))
    assert {job.status for job in everything} == set(Status)
    for fields in FILTERS:
        expected = [
            job.id
            for job in everything
            if (not fields.get("statuses") or job.status in fields["statuses"])
            and (not fields.get("queues") or job.queue in fields["queues"])
            and (not fields.get("tasks") or job.task in fields["tasks"])
            and fields.get("lane", job.lane) == job.lane
            and fields.get("key", job.key) == job.key
            and fields.get("source", job.source) == job.source
            and fields.get("parent", job.parent) == job.parent
            and fields.get("group", job.group) == job.group
            and (not fields.get("error_types") or job.error_type in fields["error_types"])
            and fields.get("worker", job.worker) == job.worker
        ]
        filter = JobFilter(**fields)
        for way in WAYS:
            seen: list[str] = []
            cursor = None
            while True:
                page = await redis_engine.list_jobs(filter, cursor=cursor, **way)
                seen += [job.id for job in page.jobs]
                cursor = page.cursor
                if cursor is None:
                    break
                assert len(page.jobs) == way["limit"] or "look" in way
            assert seen == expected, (fields, way)
        count = await redis_engine.count_jobs(filter)
        assert (count.count, count.complete) == (len(expected), True), fields


@pytest.mark.parametrize("size", [1, 100, 300, 70_000])
async def test_brief_jobs_are_read_whatever_the_size_of_what_they_leave_out(
    redis_engine: RedisEngine, size: int
) -> None:
    large = msgspec.json.encode({"a": "x" * size})
    await redis_engine.insert([a_job(args=large, meta=large, max_attempts=300, timeout=1.5)])
    worker = await a_worker(redis_engine)
    [job] = await claim(redis_engine, worker)
    entry = b'{"attempt":1}'
    await redis_engine.exchange([Settlement(job.id, job.token, Completed(large), entry=entry)])
    [whole] = await redis_engine.get([job.id])
    assert (whole.args_json, whole.meta_json, whole.result_json) == (large, large, large)
    answer = await redis_engine.run("get_brief", job.id)
    assert sum(len(part) for part in answer) < 300
    [brief] = (await redis_engine.list_jobs(JobFilter(), brief=True)).jobs
    whole.args_json, whole.meta_json, whole.result_json, whole.log = b"{}", None, None, b""
    assert brief == whole


async def test_no_step_of_a_walk_looks_at_more_than_a_thousand_jobs(
    redis_engine: RedisEngine,
) -> None:
    """However many match nothing: who waits for the server waits for one step."""
    await redis_engine.insert([a_job() for _ in range(2_500)])
    steps = []
    for by_script, words in await commands_of(
        redis_engine, redis_engine.list_jobs(JobFilter(queues=("none",)), limit=3_000)
    ):
        if by_script and words[0].upper() == "HMGET":
            steps.append(len(words) - 2)
    assert steps == [1_000, 1_000, 500]


async def test_jobs_without_an_error_are_passed_in_long_steps(
    redis_engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare error is looked for in a few trips, and no record is read that cannot match."""
    monkeypatch.setattr(job_list, "_FEW", 0)
    jobs = [a_job() for _ in range(7_000)]
    for n in range(0, len(jobs), 1_000):
        await redis_engine.insert(jobs[n : n + 1_000])
    worker = await a_worker(redis_engine)
    [first] = await claim(redis_engine, worker, 1)
    await redis_engine.exchange([Settlement(first.id, first.token, Failed(A_FAILURE))])
    filter = JobFilter(error_types=(A_FAILURE.type,))
    errors, records = redis_engine.key("errors"), redis_engine.key("jobs")
    for look in (
        lambda: redis_engine.list_jobs(filter, limit=100, brief=True, look=10_000),
        lambda: redis_engine.count_jobs(filter, look=10_000),
    ):
        life = await commands_of(redis_engine, look())
        told = [words for by_script, words in life if by_script]
        walks = [words for words in told if words[0].upper() == "ZRANGE" and "BYLEX" in words]
        assert len(walks) <= 5
        read = dict.fromkeys((errors, records), 0)
        for words in told:
            if words[0].upper() == "HMGET" and words[1] in read:
                read[words[1]] += len(words) - 2
        assert read[errors] >= 7_000
        assert read[records] <= 3


async def test_work_is_bounded_where_other_states_are_passed_over(
    redis_engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "_FEW", 0)
    [first] = await redis_engine.insert([a_job()])
    worker = await a_worker(redis_engine)
    [job] = await claim(redis_engine, worker)
    await redis_engine.exchange([Settlement(job.id, job.token, Completed())])
    await redis_engine.insert([a_job() for _ in range(150)])
    completed = JobFilter(statuses=(Status.COMPLETED,), queues=("default",))
    page = await redis_engine.list_jobs(completed, look=50)
    assert (page.jobs, page.cursor is None) == ([], False)
    assert (await redis_engine.count_jobs(completed, look=50)).complete is False
    page = await redis_engine.list_jobs(completed, look=50, cursor=page.cursor)
    assert [each.id for each in page.jobs] == [first.id]
    assert page.cursor is None
    count = await redis_engine.count_jobs(completed, look=100)
    assert (count.count, count.complete) == (1, True)


@pytest.mark.parametrize("few", [0, 20, 10_000], ids=["walked", "both", "collected"])
async def test_every_way_finds_what_has_finished_since(
    redis_engine: RedisEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(job_list, "_FEW", few)
    monkeypatch.setattr(job_list, "_STRETCH", 7)
    worker = await a_worker(redis_engine)
    ids = [each.id for each in await redis_engine.insert([a_job() for _ in range(40)])]
    moments = []
    jobs = await claim(redis_engine, worker, 40)
    for job in reversed(jobs):
        moments.append(clock.utcnow())
        await redis_engine.exchange([Settlement(job.id, job.token, Completed())])
        clock.advance(1)
    await redis_engine.rerun([ids[0], ids[39]])
    for since in (0, 10, 25, 36):
        filter = JobFilter(finished_after=moments[since])
        page = await redis_engine.list_jobs(filter, limit=100)
        assert [job.id for job in page.jobs] == ids[1 : min(40 - since, 39)][::-1]
        filter = JobFilter(finished_after=moments[since], finished_before=moments[38])
        page = await redis_engine.list_jobs(filter, limit=100, brief=True)
        assert [job.id for job in page.jobs] == ids[2 : min(40 - since, 39)][::-1]


async def test_jobs_of_some_statuses_are_counted_without_looking_at_them(
    redis_engine: RedisEngine,
) -> None:
    await redis_engine.insert([a_job(lane="l") for _ in range(3)])
    worker = await a_worker(redis_engine)
    [job] = await claim(redis_engine, worker)
    await redis_engine.exchange([Settlement(job.id, job.token, Failed(A_FAILURE))])
    await redis_engine.rerun([job.id])
    filter = JobFilter(statuses=(Status.PENDING, Status.FAILED, Status.PENDING))
    told = await commands_of(redis_engine, redis_engine.count_jobs(filter))
    key = redis_engine.key("jobs")
    assert not [words for by_script, words in told if by_script and words[1:2] == [key]]
    for statuses, expected in (((), 3), ((Status.COMPLETED,), 0), (filter.statuses, 3)):
        count = await redis_engine.count_jobs(JobFilter(statuses=statuses))
        assert (count.count, count.complete) == (expected, True)


async def test_lanes_are_found_over_many_steps(
    redis_engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.engine.redis import views

    monkeypatch.setattr(views, "_LANES_AT_ONCE", 3)
    for n in range(11):
        await redis_engine.insert([a_job(queue=f"q{n % 2}", lane=f"l{n}") for _ in range(1 + n)])
    lanes = await redis_engine.lanes(limit=4)
    assert [(lane.lane, lane.waiting) for lane in lanes] == [
        ("l10", 10),
        ("l9", 9),
        ("l8", 8),
        ("l7", 7),
    ]
    assert len(await redis_engine.lanes()) == 11
    assert {lane.lane for lane in await redis_engine.lanes(queue="q1")} == {
        "l1",
        "l3",
        "l5",
        "l7",
        "l9",
    }
    assert [lane.queue for lane in await redis_engine.lanes(lane="l4")] == ["q0"]
