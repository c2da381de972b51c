"""Listing takes different ways through the store; each has to find the same jobs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headrace.engine.redis import job_list
from headrace.engine.redis.engine import RedisEngine
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Cancelled, Completed, Failed, Outcome, Settlement, TimedOut
from headrace.model.status import Status
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
]


@pytest.mark.parametrize("few", [0, 10_000], ids=["walked", "collected"])
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
    ends: list[Outcome] = [Completed(b"1"), Failed(A_FAILURE), TimedOut(A_FAILURE), Cancelled()]
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
        ]
        for limit in (1, 4, 200):
            seen: list[str] = []
            cursor = None
            while True:
                page = await redis_engine.list_jobs(JobFilter(**fields), cursor=cursor, limit=limit)
                seen += [job.id for job in page.jobs]
                cursor = page.cursor
                if cursor is None:
                    break
                assert len(page.jobs) == limit
            assert seen == expected, fields


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
