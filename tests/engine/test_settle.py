"""Recording outcomes: once, by the attempt that owns the job."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import (
    AttemptEntry,
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import Status
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    retry,
    settle,
    status,
    the_job,
)

EVERY_OUTCOME: list[Outcome] = [
    Completed(b"2"),
    Retry(A_FAILURE, 0),
    Retry(A_FAILURE, 60),
    Failed(A_FAILURE),
    TimedOut(A_FAILURE),
    Cancelled(),
    Released(),
    Snoozed(0),
    Snoozed(60),
]


async def test_completed(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await complete(engine, job, b'{"price":1}')
    done = await the_job(engine, job_id)
    assert (done.status, done.result, done.progress) == (Status.COMPLETED, {"price": 1}, 100.0)
    assert done.completed_at is not None
    assert done.started_at is not None
    assert done.created_at <= done.started_at <= done.completed_at
    assert done.worker == "worker"
    assert done.error is None


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Failed(A_FAILURE), Status.FAILED),
        (TimedOut(A_FAILURE), Status.TIMEOUT),
        (Cancelled("enough"), Status.CANCELLED),
    ],
)
async def test_final_outcomes_keep_their_reason(
    engine: Engine, outcome: Outcome, expected: Status
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, outcome)
    done = await the_job(engine, job_id)
    assert done.status is expected
    assert done.completed_at is not None
    if expected is Status.CANCELLED:
        assert done.error == "enough"
    else:
        assert (done.error_type, done.error) == ("ValueError", "it broke")
    assert await claim(engine, worker) == []


async def test_a_retry_waits_and_spends_the_attempt(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await retry(engine, job, 5)
    waiting = await the_job(engine, job_id)
    assert (waiting.status, waiting.attempt, waiting.error) == (Status.SCHEDULED, 1, "it broke")
    assert waiting.worker is None
    assert await claim(engine, worker) == []
    clock.advance(6)
    await engine.promote_due(10)
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt, again.token) == (job_id, 2, 2)


async def test_a_retry_without_delay_is_pending_at_once(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await retry(engine, job, 0)
    assert await status(engine, job_id) is Status.PENDING
    [again] = await claim(engine, worker)
    assert again.attempt == 2


async def test_a_released_job_spends_no_attempt_and_keeps_its_place(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine)
    await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, Released())
    assert (await the_job(engine, first)).attempt == 0
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt) == (first, 1)
    assert again.token > job.token


async def test_a_snoozed_job_spends_no_attempt(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, Snoozed(30))
    assert await status(engine, job_id) is Status.SCHEDULED
    clock.advance(31)
    await engine.promote_due(10)
    [again] = await claim(engine, worker)
    assert (again.attempt, again.token) == (1, 2)


async def _owned_again(engine: Engine, worker: str, job: ClaimedJob) -> ClaimedJob:
    await retry(engine, job, 0)
    [again] = await claim(engine, worker)
    assert again.id == job.id
    return again


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=repr)
async def test_an_old_token_changes_nothing(engine: Engine, outcome: Outcome) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane="l")
    [job] = await claim(engine, worker)
    await _owned_again(engine, worker, job)
    before = await the_job(engine, job_id)
    assert not await settle(engine, job, outcome)
    assert await the_job(engine, job_id) == before


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=repr)
async def test_a_job_that_is_not_running_cannot_be_settled(
    engine: Engine, outcome: Outcome
) -> None:
    """The token alone is not enough: a released job has the same token until its next claim."""
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await settle(engine, job, Released())
    before = await the_job(engine, job_id)
    assert not await settle(engine, job, outcome)
    assert await the_job(engine, job_id) == before


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=repr)
async def test_an_outcome_is_recorded_once(engine: Engine, outcome: Outcome) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await complete(engine, job, b"1")
    before = await the_job(engine, job_id)
    assert not await settle(engine, job, outcome)
    assert await the_job(engine, job_id) == before


async def test_one_settlement_twice_in_a_batch_counts_once(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane="l", width=2)
    await enqueue(engine, lane="l", width=2)
    [job, _] = await claim(engine, worker, 2)
    await engine.exchange(
        [Settlement(job.id, job.token, Completed(b"1")), Settlement(job.id, job.token, Released())]
    )
    assert await engine.audit() == []
    assert await status(engine, job_id) in (Status.COMPLETED, Status.PENDING)


async def test_refused_settlements_do_not_disturb_the_others(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(3)])
    jobs = await claim(engine, worker, 3)
    unknown = a_job()
    answer = await engine.exchange(
        [
            Settlement(jobs[0].id, jobs[0].token, Completed(b"1")),
            Settlement(unknown.id, 1, Completed(b"1")),
            Settlement(jobs[1].id, jobs[1].token + 1, Completed(b"1")),
            Settlement(jobs[2].id, jobs[2].token, Failed(A_FAILURE)),
        ]
    )
    assert set(answer.refused) == {unknown.id, jobs[1].id}
    assert await status(engine, jobs[0].id) is Status.COMPLETED
    assert await status(engine, jobs[1].id) is Status.RUNNING
    assert await status(engine, jobs[2].id) is Status.FAILED


async def test_all_kinds_in_one_batch(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane=f"l{n % 4}", width=3) for n in range(len(EVERY_OUTCOME))])
    jobs = await claim(engine, worker, 20)
    answer = await engine.exchange(
        [Settlement(j.id, j.token, o) for j, o in zip(jobs, EVERY_OUTCOME, strict=True)]
    )
    assert answer.refused == ()
    statuses = [await status(engine, job.id) for job in jobs]
    assert statuses == [
        Status.COMPLETED,
        Status.PENDING,
        Status.SCHEDULED,
        Status.FAILED,
        Status.TIMEOUT,
        Status.CANCELLED,
        Status.PENDING,
        Status.PENDING,
        Status.SCHEDULED,
    ]


async def test_the_attempt_log_grows_by_line_and_survives_the_end(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    for attempt in (1, 2):
        [job] = await claim(engine, worker)
        entry = AttemptEntry(
            attempt=attempt,
            token=job.token,
            outcome="retry",
            worker="w",
            ended_at=datetime.now(UTC),
            failure=A_FAILURE,
        )
        outcome: Outcome = Retry(A_FAILURE, 0) if attempt == 1 else Failed(A_FAILURE)
        await engine.exchange([Settlement(job.id, job.token, outcome, msgspec.json.encode(entry))])
    attempts = (await the_job(engine, job_id)).attempts
    assert [entry.attempt for entry in attempts] == [1, 2]
    assert attempts[0].failure == A_FAILURE


async def test_the_attempt_log_is_bounded(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, max_attempts=100)
    for attempt in range(12):
        [job] = await claim(engine, worker)
        entry = b'{"attempt":%d,"token":1,"outcome":"retry","worker":"' % attempt
        entry += b"w" * 30_000 + b'","ended_at":"2026-01-01T00:00:00Z"}'
        await engine.exchange([Settlement(job.id, job.token, Retry(A_FAILURE, 0), entry)])
    job_seen = await the_job(engine, job_id)
    assert len(job_seen.log) <= 262_144
    assert [entry.attempt for entry in job_seen.attempts] == list(range(4, 12))


@pytest.mark.parametrize("lane", [None, "l"])
async def test_of_two_outcomes_of_an_attempt_in_one_call_the_first_counts(
    engine: Engine, lane: str | None
) -> None:
    worker = await a_worker(engine)
    firsts: list[Outcome] = [
        Failed(A_FAILURE),
        Completed(b"1"),
        Retry(A_FAILURE, 60),
        Released(),
        Cancelled("no"),
    ]
    others: list[Outcome] = [
        Completed(b"2"),
        Failed(A_FAILURE),
        Completed(b"2"),
        Failed(A_FAILURE),
        Retry(A_FAILURE, 0),
    ]
    ids = [await enqueue(engine, lane=lane, width=10) for _ in (*firsts, "the last")]
    *jobs, last = await claim(engine, worker, 10)
    assert [job.id for job in (*jobs, last)] == ids
    stale = Settlement(last.id, last.token - 1, Failed(A_FAILURE))
    answer = await engine.exchange(
        [
            stale,
            *(
                Settlement(job.id, job.token, first)
                for job, first in zip(jobs, firsts, strict=True)
            ),
            *(
                Settlement(job.id, job.token, other)
                for job, other in zip(jobs, others, strict=True)
            ),
            Settlement(last.id, last.token, Completed(b"3")),
            *(Settlement(job.id, job.token, Completed(b"4")) for job in jobs[:1]),
        ],
        worker_id=worker,
        limit=10,
    )
    assert sorted(answer.refused) == sorted([*ids, ids[0]])
    assert [(job.id, job.token, job.attempt) for job in answer.jobs] == [(ids[3], 2, 1)]
    seen = {job.id: job for job in await engine.get(ids)}
    assert [seen[job_id].status for job_id in ids] == [
        Status.FAILED,
        Status.COMPLETED,
        Status.SCHEDULED,
        Status.RUNNING,
        Status.CANCELLED,
        Status.COMPLETED,
    ]
    assert [seen[job_id].result for job_id in (ids[1], ids[5])] == [1, 3]
    assert (seen[ids[0]].error, seen[ids[4]].error) == (A_FAILURE.message, "no")
