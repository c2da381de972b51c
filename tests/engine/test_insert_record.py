"""Jobs and a record, stored in one step."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import RecordConflict
from headrace.model.durable.writes import Entry, Note
from headrace.model.views import RecordChange
from tests.engine.conftest import Opener
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue


async def test_jobs_and_record_are_stored_together(engine: Engine) -> None:
    job = a_job()
    [made] = await engine.insert([job], record=RecordChange("cron", "nightly", b"1", 0))
    assert made.created
    record = await engine.record_get("cron", "nightly")
    assert record is not None
    assert (record.version, record.body) == (1, b"1")
    await engine.insert([a_job()], record=RecordChange("cron", "nightly", b"2", 1))
    await engine.insert([a_job()], record=RecordChange("cron", "nightly", b"3"))
    record = await engine.record_get("cron", "nightly")
    assert record is not None
    assert (record.version, record.body) == (3, b"3")


@pytest.mark.parametrize("version", [0, 2])
async def test_no_job_is_stored_if_the_record_has_changed(engine: Engine, version: int) -> None:
    await engine.record_put("cron", "nightly", b"1")
    job = a_job(key="k", lane="l")
    with pytest.raises(RecordConflict):
        await engine.insert([job], record=RecordChange("cron", "nightly", b"2", version))
    assert await engine.get([job.id]) == []
    record = await engine.record_get("cron", "nightly")
    assert record is not None
    assert (record.version, record.body) == (1, b"1")
    # The key is free as well.
    [made] = await engine.insert([job])
    assert made.created


async def test_no_job_is_stored_if_the_record_is_not_there(engine: Engine) -> None:
    job = a_job()
    with pytest.raises(RecordConflict):
        await engine.insert([job], record=RecordChange("cron", "none", b"2", 4))
    assert await engine.get([job.id]) == []


async def test_a_record_is_written_without_jobs_and_with_jobs_that_exist(engine: Engine) -> None:
    assert await engine.insert([], record=RecordChange("cron", "a", b"1", 0)) == []
    job = a_job()
    await engine.insert([job])
    [again] = await engine.insert([job], record=RecordChange("cron", "a", b"2", 1))
    assert not again.created
    record = await engine.record_get("cron", "a")
    assert record is not None
    assert record.version == 2


async def test_of_several_at_once_one_gets_through(engine: Engine, open_another: Opener) -> None:
    doors = [engine, await open_another(), await open_another()]
    for turn in range(10):
        jobs = [a_job() for _ in doors]
        answers = await asyncio.gather(
            *(
                door.insert([job], record=RecordChange("cron", "a", b"1", turn))
                for door, job in zip(doors, jobs, strict=True)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, RecordConflict) for answer in answers) == 2
        assert len(await engine.get([job.id for job in jobs])) == 1


async def test_pruning_leaves_word_of_jobs_that_kept_artifacts(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    kept, other = await enqueue(engine), await enqueue(engine)
    for job in await claim(engine, worker, limit=2):
        kind = "artifact" if job.id == kept else "stage"
        entries = (Entry(kind, "one", b"{}"), Entry(kind, "two", b"{}"))
        await engine.write_progress([Note(job.id, job.token, entries=entries)])
        await complete(engine, job)
    clock.advance(100)
    assert await engine.prune(older_than=50) == 2
    assert await engine.get([kept, other]) == []
    assert [record.key for record in await engine.record_list("pruned-artifacts")] == [kept]
