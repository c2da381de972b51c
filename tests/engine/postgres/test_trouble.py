"""What cannot be stored or reached is said in the words of the contract, and harms nothing else."""

from __future__ import annotations

import math
import re

import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import parse_address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineUnavailable, InvalidInput, InvalidSetting, StorageFull
from headrace.model.durable.writes import Entry, Note
from headrace.model.job import JobFilter
from headrace.model.outcome import Completed, Failed, Failure, Retry, Settlement, Snoozed
from headrace.model.status import Status
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status, the_job

NO_ROOM = """
CREATE FUNCTION {schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$;
CREATE TRIGGER no_room BEFORE INSERT ON {schema}.{table}
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.no_room();
"""


async def test_one_bad_settlement_does_not_disturb_the_others(postgres: PostgresEngine) -> None:
    worker = await a_worker(postgres)
    await postgres.insert([a_job() for _ in range(6)])
    jobs = await claim(postgres, worker, 5)
    ugly = Failure(type="Ugly\x00Error", message="nul \x00 and surrogate \ud800")
    settlements = [
        Settlement(jobs[0].id, jobs[0].token, Completed(b"1")),
        Settlement(jobs[1].id, 2**40, Completed(b"1")),
        Settlement("not an id", 1, Completed(b"1")),
        Settlement(jobs[2].id, jobs[2].token, Failed(ugly)),
        Settlement(jobs[3].id, jobs[3].token, Snoozed(math.inf)),
        Settlement(jobs[4].id, jobs[4].token, Retry(ugly, math.nan)),
    ]
    answer = await postgres.exchange(settlements, worker_id=worker, limit=1)
    assert set(answer.refused) == {jobs[1].id, "not an id"}
    assert [await status(postgres, job.id) for job in jobs] == [
        Status.COMPLETED,
        Status.RUNNING,
        Status.FAILED,
        Status.SCHEDULED,
        Status.RUNNING,
    ]
    assert [job.id for job in answer.jobs] == [jobs[4].id]
    assert (await the_job(postgres, jobs[2].id)).error == "nul \ufffd and surrogate \ufffd"


async def test_one_bad_note_does_not_disturb_the_others(postgres: PostgresEngine) -> None:
    worker = await a_worker(postgres)
    await postgres.insert([a_job(), a_job()])
    one, two = await claim(postgres, worker, 2)
    notes = [
        Note(one.id, one.token, stage="a\x00b", entries=(Entry("k\x00", "n\x00", b"\x00"),)),
        Note("not an id", 1, progress=1),
        Note(two.id, 2**40, progress=1),
        Note(two.id, two.token, progress=3),
    ]
    assert set(await postgres.write_progress(notes)) == {"not an id", two.id}
    assert (await the_job(postgres, one.id)).stage == "a\ufffdb"
    assert (await the_job(postgres, two.id)).progress == 3.0


async def test_ids_that_cannot_be_ids_are_unknown(postgres: PostgresEngine) -> None:
    assert await postgres.get(["x", ""]) == []
    assert await postgres.cancel(["x"]) == {}
    assert await postgres.rerun(["x"]) == []
    assert await postgres.entries("x") == []
    with pytest.raises(InvalidInput, match="cursor 'x'"):
        await postgres.list_jobs(JobFilter(), cursor="x")


async def test_what_cannot_be_stored_is_refused_whole(postgres: PostgresEngine) -> None:
    with pytest.raises(InvalidInput, match="Nothing was stored"):
        await postgres.insert([a_job(), a_job(key="nul \x00")])
    assert (await postgres.list_jobs(JobFilter())).jobs == []


async def test_a_call_can_be_repeated(postgres: PostgresEngine) -> None:
    """After a lost connection nobody knows whether it took effect; once is enough."""
    worker = await a_worker(postgres)
    jobs = [a_job(), a_job(lane="l"), a_job(key="k"), a_job(delay=60)]
    first = await postgres.insert(jobs)
    assert [each.created for each in first] == [True] * 4
    again = await postgres.insert(jobs)
    assert [each.id for each in again] == [job.id for job in jobs]
    claimed = await claim(postgres, worker, 10)
    assert len(claimed) == 3
    for job in claimed:
        assert await complete(postgres, job)
    assert [each.id for each in await postgres.insert(jobs)] == [job.id for job in jobs]
    assert await claim(postgres, worker, 10) == []
    assert len((await postgres.list_jobs(JobFilter())).jobs) == 4


@pytest.mark.parametrize("table", ["job", "history"])
async def test_a_full_disk_is_told_and_nothing_is_written(
    postgres: PostgresEngine, raw: Raw, table: str
) -> None:
    worker = await a_worker(postgres)
    await enqueue(postgres, lane="l")
    [job] = await claim(postgres, worker)
    schema = postgres.address.quoted_schema
    await raw.execute(NO_ROOM.format(schema=schema, table=table))
    verb = enqueue(postgres, lane="l") if table == "job" else complete(postgres, job)
    with pytest.raises(StorageFull, match="No space left"):
        await verb
    assert await postgres.audit() == []
    await raw.execute(f"DROP TRIGGER no_room ON {schema}.{table}")
    assert await complete(postgres, job)


async def test_a_wrong_database_or_password_names_the_remedy(engine_url: str) -> None:
    missing = PostgresEngine(re.sub(r"/\w+\?", "/nowhere?", engine_url), clock=Clock())
    with pytest.raises(EngineUnavailable, match="Create the database"):
        await missing.open()
    stranger = PostgresEngine(engine_url.replace("postgres@", "stranger:pw@"), clock=Clock())
    with pytest.raises(EngineUnavailable, match="Check the user and the password") as caught:
        await stranger.open()
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("schema", ["", "$user", "a%00b", "a%0Ab", "pg_x", "ü" * 32, "a" * 64])
def test_a_schema_that_cannot_be_one_is_refused(schema: str) -> None:
    with pytest.raises(InvalidSetting, match="schema"):
        parse_address(f"postgresql://h/d?schema={schema}")


def test_parameters_of_the_driver_are_passed_on() -> None:
    address = parse_address("postgresql://u:secret@h:1/d?sslmode=require&schema=s&x=a%20b")
    assert address.dsn == "postgresql://u:secret@h:1/d?sslmode=require&x=a+b"
    assert (address.schema, address.shown) == ("s", "h:1/d")
    assert parse_address("postgresql:///d?host=/tmp").shown == "/tmp/d"


@pytest.mark.parametrize("parameter", ["sslmode=bogus", "no_such_parameter=1"])
async def test_a_parameter_that_nobody_knows_is_named(engine_url: str, parameter: str) -> None:
    engine = PostgresEngine(f"{engine_url}&{parameter}", clock=Clock())
    with pytest.raises(InvalidSetting, match=r"HEADRACE_URL.*parameter"):
        await engine.open()
    await engine.close()
