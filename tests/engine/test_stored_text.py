"""Characters that some store cannot keep: replaced alike everywhere, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from headrace.engine.base import Engine
from headrace.model.durable.writes import Entry, Note
from headrace.model.outcome import Cancelled, Failed, Failure, Outcome, Retry, Settlement, TimedOut
from headrace.model.status import Status
from headrace.model.worker import WorkerStats
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, settle, the_job

ODD = "a\x00b\ud83dc\udfffd\x00"
KEPT = "a\ufffdb\ufffdc\ufffdd\ufffd"
# Characters that every store can keep are left alone, strange as they may be.
STRANGE = "\x01\x02\x7f\t\r\n\u2028\ufeff\ufffe 물🎡"
FAILURE = Failure(ODD, ODD + STRANGE, ODD)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Retry(FAILURE, 0), Status.PENDING),
        (Retry(FAILURE, 60), Status.SCHEDULED),
        (Failed(FAILURE), Status.FAILED),
        (TimedOut(FAILURE), Status.TIMEOUT),
        (Cancelled(ODD + STRANGE), Status.CANCELLED),
    ],
)
async def test_no_outcome_is_lost_for_a_character(
    engine: Engine, outcome: Outcome, status: Status
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, outcome)
    seen = await the_job(engine, job_id)
    error_type = None if status is Status.CANCELLED else KEPT
    assert (seen.status, seen.error_type, seen.error) == (status, error_type, KEPT + STRANGE)


async def test_odd_errors_do_not_disturb_the_others_of_their_batch(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(6)])
    jobs = await claim(engine, worker, 6)
    answer = await engine.exchange(
        [Settlement(job.id, job.token, Failed(FAILURE)) for job in jobs[::2]]
        + [Settlement(job.id, job.token, Failed(Failure("T", "m"))) for job in jobs[1::2]]
    )
    assert answer.refused == ()
    seen = await engine.get([job.id for job in jobs])
    assert [job.error_type for job in seen] == [KEPT, "T"] * 3


async def test_a_reason_may_have_any_character(engine: Engine) -> None:
    worker = await a_worker(engine)
    running = await enqueue(engine)
    [job] = await claim(engine, worker)
    pending = await enqueue(engine)
    assert await engine.cancel([running, pending], ODD) == {running: False, pending: True}
    assert await settle(engine, job, Retry(FAILURE, 0))
    for seen in await engine.get([running, pending]):
        assert (seen.status, seen.error_type, seen.error) == (Status.CANCELLED, None, KEPT)


async def test_notes_may_have_any_character(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    entries = (Entry(ODD, ODD, b"1"), Entry("stage", ODD + STRANGE, b"2"), Entry(ODD, ODD, b"3"))
    assert (
        await engine.write_progress(
            [
                Note(one.id, one.token, ODD, 5.0, ODD + STRANGE, entries),
                Note(two.id, two.token, "plain", 6.0, "plain"),
            ]
        )
        == ()
    )
    seen = await the_job(engine, one.id)
    assert (seen.stage, seen.message, seen.progress) == (KEPT, KEPT + STRANGE, 5.0)
    assert [(each.kind, each.name, bytes(each.body)) for each in await engine.entries(one.id)] == [
        (KEPT, KEPT, b"3"),
        ("stage", KEPT + STRANGE, b"2"),
    ]
    assert (await the_job(engine, two.id)).stage == "plain"
    await engine.write_progress([Note(one.id, one.token, progress=100.0)])
    await complete(engine, one)
    assert (await the_job(engine, one.id)).message == KEPT + STRANGE


async def test_names_that_become_the_same_are_one_entry(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    entries = tuple(
        Entry("stage", name, body)
        for name, body in (("x\x00", b"1"), ("y", b"2"), ("x\ufffd", b"3"), ("x\ud800", b"4"))
    )
    assert await engine.write_progress([Note(job.id, job.token, entries=entries)]) == ()
    kept = [(each.name, bytes(each.body)) for each in await engine.entries(job_id)]
    assert kept == [("x\ufffd", b"4"), ("y", b"2")]


async def test_empty_texts_stay_what_they_are(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    await engine.write_progress([Note(one.id, one.token, "s", 5.0, "m")])
    await engine.write_progress([Note(one.id, one.token, "", 0.0, "")])
    seen = await the_job(engine, one.id)
    assert (seen.stage, seen.message, seen.progress) == ("", "", 0.0)
    await settle(engine, one, Failed(Failure("", "")))
    await settle(engine, two, Cancelled(""))
    seen, other = await engine.get([one.id, two.id])
    assert (seen.error_type, seen.error, other.error_type, other.error) == ("", "", None, "")


async def test_a_worker_may_have_any_name(engine: Engine) -> None:
    worker = await a_worker(engine, ODD, host=ODD, version=ODD)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert (await the_job(engine, job_id)).worker == KEPT

    def on_thread() -> bool:
        keeper = engine.keeper(worker, LEASE)
        try:
            return keeper.renew(WorkerStats()).alive
        finally:
            keeper.close()

    assert await asyncio.to_thread(on_thread)
    [seen] = await engine.workers()
    assert (seen.name, seen.host, seen.version) == (KEPT, KEPT, KEPT)
    await engine.retire(worker)
    [lost] = await engine.take_lost(10)
    assert lost.worker == KEPT
    assert await complete(engine, job)
    assert (await the_job(engine, job_id)).worker == KEPT


async def test_a_worker_with_an_odd_name_is_replaced_by_its_successor(engine: Engine) -> None:
    before = await a_worker(engine, ODD)
    job_id = await enqueue(engine)
    await claim(engine, before)
    await a_worker(engine, ODD)
    [lost] = await engine.take_lost(10)
    assert (lost.job.id, lost.worker) == (job_id, KEPT)
