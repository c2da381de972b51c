"""Reading many jobs whose results are long, in parts bounded by bytes."""

from __future__ import annotations

from headrace.engine.base import Engine
from headrace.engine.bounded_reads import SHORT_BYTES
from headrace.model.ids import new_id
from headrace.model.job import Job
from tests.support.verbs import a_job, a_worker, claim, complete

LONG = b'"' + b"x" * 100_000 + b'"'


async def finished(engine: Engine, count: int, result: bytes) -> list[str]:
    """Ids of jobs with this result."""
    inserted = await engine.insert([a_job() for _ in range(count)])
    worker = await a_worker(engine)
    for job in await claim(engine, worker, count):
        await complete(engine, job, result)
    return [each.id for each in inserted]


async def all_parts(engine: Engine, ids: list[str], most_bytes: int) -> list[list[Job]]:
    parts, rest = [], ids
    while rest:
        left = len(rest)
        jobs, rest = await engine.get_part(rest, most_bytes)
        assert len(rest) < left
        parts.append(jobs)
    return parts


async def test_short_jobs_come_in_one_part_whether_or_not_they_have_ended(engine: Engine) -> None:
    ids = await finished(engine, 3, b"1")
    [unfinished] = await engine.insert([a_job()])
    [part] = await all_parts(engine, [unfinished.id, *ids], SHORT_BYTES)
    assert sorted(job.id for job in part) == sorted([*ids, unfinished.id])
    found = {job.id: job for job in await engine.get([*ids, unfinished.id])}
    assert {job.id: job for job in part} == found


async def test_a_part_of_long_results_has_no_more_bytes_than_asked_for(engine: Engine) -> None:
    ids = await finished(engine, 12, LONG)
    parts = await all_parts(engine, ids, 450_000)
    # Beside what is short enough to come first.
    assert all(
        sum(len(job.result_json or b"") for job in part) <= 450_000 + SHORT_BYTES for part in parts
    )
    assert len(parts) > 1
    assert sorted(job.id for part in parts for job in part) == sorted(ids)
    assert {job.result_json for part in parts for job in part} == {LONG}


async def test_a_job_that_is_longer_than_a_part_comes_alone(engine: Engine) -> None:
    ids = await finished(engine, 3, LONG)
    parts = await all_parts(engine, ids, 10_000)
    assert [len(part) for part in parts] == [1, 1, 1]


async def test_unknown_jobs_are_left_out_of_parts(engine: Engine) -> None:
    before = new_id()
    ids = await finished(engine, 3, LONG)
    gone = [before, new_id(), "no id"]
    parts = await all_parts(engine, [*gone, *ids, new_id()], 10_000)
    assert sorted(job.id for part in parts for job in part) == sorted(ids)
    assert await engine.get_part(gone, 10_000) == ([], [])
    assert await engine.get_part([], 10_000) == ([], [])
