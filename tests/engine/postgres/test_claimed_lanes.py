"""The lanes that a worker tells with its outcomes, and what comes of them when things went on."""

from __future__ import annotations

import pytest

from headrace.engine.postgres.connection import claim_memory as claim_module
from headrace.engine.postgres.connection.claim_memory import ClaimedLanes
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import State
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, enqueue, the_job


def job(job_id: str, lane: str | None, queue: str = "default") -> ClaimedJob:
    return ClaimedJob(
        id=job_id,
        token=1,
        attempt=1,
        task="work",
        queue=queue,
        args=b"{}",
        max_attempts=4,
        timeout=None,
        lane=lane,
    )


def done(*ids: str) -> list[Settlement]:
    return [Settlement(each, 1, Completed()) for each in ids]


def test_each_lane_is_told_once_with_its_jobs() -> None:
    known = ClaimedLanes()
    known.remember([job("1", "a"), job("2", "b"), job("3", "a"), job("4", "a", "other")])
    assert known.columns(done("1", "2", "3", "4")) == (
        ["default", "default", "other"],
        ["a", "b", "a"],
        [2, 1, 1],
    )


def test_nothing_is_told_unless_all_are_known() -> None:
    known = ClaimedLanes()
    known.remember([job("1", "a"), job("2", None)])
    assert known.columns(done("1", "2")) == ([], [], [])
    assert known.columns(done("1", "3")) == ([], [], [])
    assert known.columns([]) == ([], [], [])


def test_what_is_settled_is_forgotten() -> None:
    known = ClaimedLanes()
    known.remember([job("1", "a"), job("2", "b")])
    known.forget(done("1"))
    assert known.columns(done("1")) == ([], [], [])
    assert known.columns(done("2")) == (["default"], ["b"], [1])


def test_jobs_that_never_come_back_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_module, "MOST_LANES", 3)
    known = ClaimedLanes()
    for n in range(100):
        known.remember([job(f"{n}", "a")])
    assert len(known._known) <= 4


async def test_jobs_of_a_callers_transaction_are_admitted_with_the_lanes_that_are_known(
    postgres: PostgresEngine, raw: Raw
) -> None:
    worker = await a_worker(postgres)
    for _ in range(2):
        await enqueue(postgres, lane="a")
    [first] = await claim(postgres, worker, 10)
    async with raw.transaction():
        await postgres.insert_within(raw, [a_job(lane=lane) for lane in ("a", "b")])
    answer = await postgres.exchange(
        [Settlement(first.id, first.token, Completed())], worker_id=worker, limit=10
    )
    assert sorted(str(each.lane) for each in answer.jobs) == ["a", "b"]
    assert await postgres.audit() == []


async def test_lanes_that_are_known_are_filled_though_an_outcome_is_refused(
    postgres: PostgresEngine,
) -> None:
    worker = await a_worker(postgres)
    for lane in ("a", "a", "b", "b"):
        await enqueue(postgres, lane=lane)
    jobs = await claim(postgres, worker, 10)
    stale, good = (Settlement(each.id, each.token, Completed()) for each in jobs)
    stale = Settlement(stale.job_id, stale.token + 1, Completed())
    answer = await postgres.exchange([stale, good], worker_id=worker, limit=10)
    assert answer.refused == (stale.job_id,)
    assert [each.lane for each in answer.jobs] == [jobs[1].lane]
    assert await postgres.audit() == []


async def test_a_wide_lane_gives_as_many_places_as_were_left(postgres: PostgresEngine) -> None:
    worker = await a_worker(postgres)
    for _ in range(10):
        await enqueue(postgres, lane="a", width=4)
    jobs = await claim(postgres, worker, 10)
    assert len(jobs) == 4
    left = [Settlement(each.id, each.token, Completed()) for each in jobs[:3]]
    answer = await postgres.exchange(left, worker_id=worker, limit=10)
    assert len(answer.jobs) == 3
    assert await postgres.audit() == []


async def test_a_narrowed_lane_gives_no_place_until_it_has_one(postgres: PostgresEngine) -> None:
    worker = await a_worker(postgres)
    for _ in range(3):
        await enqueue(postgres, lane="a", width=3)
    jobs = await claim(postgres, worker, 10)
    last = await enqueue(postgres, lane="a", width=1)
    for each in jobs[:2]:
        answer = await postgres.exchange(
            [Settlement(each.id, each.token, Completed())], worker_id=worker, limit=10
        )
        assert answer.jobs == []
        assert await postgres.audit() == []
    await postgres.exchange([Settlement(jobs[2].id, jobs[2].token, Completed())])
    assert (await the_job(postgres, last)).state is State.READY
    assert await postgres.audit() == []
