"""Progress, stages and entries of running attempts, guarded by their token."""

from __future__ import annotations

import pytest

from headrace.engine.base import Engine
from headrace.model.durable.writes import Entry, Note
from headrace.model.ids import new_id
from headrace.model.outcome import Completed, Settlement
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, fail, retry, the_job


async def test_progress_stage_and_message_are_seen(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await engine.write_progress([Note(job.id, job.token, "crawling", 12.5, "page 1")]) == ()
    seen = await the_job(engine, job_id)
    assert (seen.stage, seen.progress, seen.message) == ("crawling", 12.5, "page 1")
    await engine.write_progress([Note(job.id, job.token, progress=50)])
    seen = await the_job(engine, job_id)
    assert (seen.stage, seen.progress, seen.message) == ("crawling", 50.0, "page 1")
    await complete(engine, job)
    seen = await the_job(engine, job_id)
    assert (seen.stage, seen.progress, seen.message) == ("crawling", 100.0, None)


@pytest.mark.parametrize("entry", [None, b'{"outcome":"completed"}'])
async def test_a_completed_job_keeps_the_message_of_its_end_and_no_other(
    engine: Engine, entry: bytes | None
) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine) for _ in range(2)]
    jobs = {job.id: job for job in await claim(engine, worker, 2)}
    told = [(75.0, "turn 3 of 4"), (100.0, "18 s of audio")]
    await engine.write_progress(
        [Note(each, jobs[each].token, None, *said) for each, said in zip(ids, told, strict=True)]
    )
    await engine.exchange(
        [Settlement(each, jobs[each].token, Completed(), entry) for each in ids], limit=0
    )
    assert [(await the_job(engine, each)).message for each in ids] == [None, "18 s of audio"]


async def test_a_failed_job_keeps_its_last_message(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress([Note(job.id, job.token, None, 75.0, "turn 3 of 4")])
    await fail(engine, job)
    assert (await the_job(engine, job_id)).message == "turn 3 of 4"


async def test_a_failed_job_keeps_how_far_it_came(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress([Note(job.id, job.token, "parsing", 40.0)])
    await fail(engine, job)
    seen = await the_job(engine, job_id)
    assert (seen.stage, seen.progress) == ("parsing", 40.0)


async def test_several_notes_of_one_job_apply_in_order(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress(
        [
            Note(job.id, job.token, "one", 10.0, entries=(Entry("stage", "one", b"1"),)),
            Note(job.id, job.token, "two", 20.0, entries=(Entry("stage", "two", b"2"),)),
        ]
    )
    seen = await the_job(engine, job_id)
    assert (seen.stage, seen.progress) == ("two", 20.0)
    assert [entry.name for entry in await engine.entries(job_id)] == ["one", "two"]


async def test_entries_are_kept_by_kind_and_name(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress(
        [
            Note(
                job.id,
                job.token,
                entries=(
                    Entry("stage", "b", b"1"),
                    Entry("artifact", "a", b'{"size":3}'),
                    Entry("stage", "a", b'"\xec\x88\x98"'),
                ),
            )
        ]
    )
    await engine.write_progress([Note(job.id, job.token, entries=(Entry("stage", "b", b"2"),))])
    stages = await engine.entries(job_id, "stage")
    assert [(e.name, bytes(e.body), e.token) for e in stages] == [
        ("b", b"2", 1),
        ("a", b'"\xec\x88\x98"', 1),
    ]
    assert [entry.name for entry in await engine.entries(job_id)] == ["b", "a", "a"]
    assert await engine.entries(new_id()) == []


async def test_a_lost_attempt_writes_nothing(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [old] = await claim(engine, worker)
    await retry(engine, old, 0)
    [current] = await claim(engine, worker)
    note = Note(old.id, old.token, "late", 99.0, "late", (Entry("stage", "late", b"1"),))
    before = await the_job(engine, job_id)
    assert await engine.write_progress([note]) == (job_id,)
    assert await the_job(engine, job_id) == before
    assert await engine.entries(job_id) == []
    assert await engine.write_progress([Note(current.id, current.token, progress=1)]) == ()


async def test_a_finished_or_unknown_job_takes_no_note(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    before = await the_job(engine, job_id)
    unknown = new_id()
    entry = Entry("stage", "late", b"1")
    refused = await engine.write_progress(
        [Note(job.id, job.token, progress=1, entries=(entry,)), Note(unknown, 1, entries=(entry,))]
    )
    assert set(refused) == {job_id, unknown}
    assert await the_job(engine, job_id) == before
    assert await engine.entries(job_id) == []


async def test_refused_notes_do_not_disturb_the_others(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    assert await engine.write_progress(
        [Note(one.id, one.token + 1, progress=9), Note(two.id, two.token, progress=7)]
    ) == (one.id,)
    assert (await the_job(engine, two.id)).progress == 7.0


async def test_entries_and_progress_survive_a_retry(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress(
        [Note(job.id, job.token, "s", 30.0, entries=(Entry("stage", "s", b"1"),))]
    )
    await retry(engine, job, 0)
    await claim(engine, worker)
    assert [bytes(entry.body) for entry in await engine.entries(job_id, "stage")] == [b"1"]
    assert (await the_job(engine, job_id)).progress == 30.0
