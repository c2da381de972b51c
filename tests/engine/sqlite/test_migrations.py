"""Files of earlier versions are brought up to date with everything that is in them."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.engine.sql_files import migration
from headrace.engine.sqlite.connection import migrate as migrate_module
from headrace.engine.sqlite.connection.migrate import NEWEST
from headrace.model.durable.awaited import AwaitedEvent
from headrace.model.job import JobFilter
from headrace.model.outcome import Snoozed
from headrace.model.status import Status
from tests.engine.sqlite.conftest import Maker
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle

# What a later version may want.
LATER = ["ALTER TABLE job ADD COLUMN colour TEXT", "ALTER TABLE history ADD COLUMN colour TEXT"]


def of_a_later_version(patch: pytest.MonkeyPatch, statements: list[str]) -> None:
    """From here on, Headrace knows one migration more."""
    later = migration(NEWEST + 1, "later", ";\n".join([*statements, ""]))
    patch.setattr(migrate_module, "KNOWN", [*migrate_module.KNOWN, later])
    patch.setattr(migrate_module, "NEWEST", NEWEST + 1)


def version_and_columns(path: Path) -> tuple[int, set[str]]:
    """What is in the file, behind the engine's back."""
    behind = sqlite3.connect(path)
    [(version,)] = behind.execute("SELECT max(version) FROM migration")
    columns = {row[1] for row in behind.execute("PRAGMA table_info(job)")}
    behind.close()
    return version, columns


async def test_a_new_file_has_the_newest_version(path: Path, open_url: Maker) -> None:
    await open_url(f"sqlite:///{path}")
    assert version_and_columns(path)[0] == NEWEST == migrate_module.KNOWN[-1].number


async def test_a_later_migration_keeps_every_job(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_url(f"sqlite:///{path}")
    worker = await a_worker(engine)
    for _ in range(3):
        await enqueue(engine)
    finished, held, suspended = await claim(engine, worker, limit=3)
    assert await complete(engine, finished)
    assert await settle(engine, suspended, Snoozed(60, (AwaitedEvent("go"),)))
    await engine.insert([a_job(parent=suspended.id, group="a", lane="l") for _ in range(2)])
    scheduled, keyed = await enqueue(engine, delay=60), await enqueue(engine, key="k")
    before = (await engine.list_jobs(JobFilter(), limit=10)).jobs
    assert len(before) == 7
    await engine.close()

    of_a_later_version(monkeypatch, LATER)
    engine = await open_url(f"sqlite:///{path}")
    version, columns = version_and_columns(path)
    assert (version, "colour" in columns) == (NEWEST + 1, True)
    assert (await engine.list_jobs(JobFilter(), limit=10)).jobs == before
    assert await engine.audit() == []
    [same] = await engine.insert([a_job(key="k")])
    assert (same.id, same.created) == (keyed, False)
    assert await complete(engine, held)
    assert await engine.signal(suspended.id, "go", b"1") == "delivered"
    assert await engine.wake([suspended.id]) == [suspended.id]
    assert await engine.rerun([finished.id, scheduled]) == [finished.id, scheduled]
    while jobs := await claim(engine, worker, limit=10):
        for job in jobs:
            assert await complete(engine, job)
    jobs_now = (await engine.list_jobs(JobFilter(), limit=10)).jobs
    assert [job.status for job in jobs_now] == [Status.COMPLETED] * 7
    assert await engine.audit() == []


async def test_a_migration_that_stops_half_way_leaves_the_file_as_it_was(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_url(f"sqlite:///{path}")
    job_id = await enqueue(engine)
    await engine.close()
    before = version_and_columns(path)
    with monkeypatch.context() as patch:
        of_a_later_version(patch, [*LATER, "INSERT INTO nowhere VALUES (1)"])
        with pytest.raises(Exception, match="nowhere"):
            await open_url(f"sqlite:///{path}")
    assert version_and_columns(path) == before
    engine = await open_url(f"sqlite:///{path}")
    assert [job.id for job in await engine.get([job_id])] == [job_id]


async def test_several_may_bring_a_file_up_to_date_at_once(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column cannot be added twice, so whoever repeats what another has done fails."""
    await (await open_url(f"sqlite:///{path}")).close()
    of_a_later_version(monkeypatch, LATER)
    engines = await asyncio.gather(*(open_url(f"sqlite:///{path}") for _ in range(8)))
    ids = [await enqueue(engine) for engine in engines]
    assert len(await engines[0].get(ids)) == 8
    assert version_and_columns(path)[0] == NEWEST + 1
