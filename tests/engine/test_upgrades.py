"""Old and new programs on one store: who may use it, and who may change it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import Migrate, open_engine
from headrace.engine.postgres.connection import migrate as postgres
from headrace.engine.postgres.sql import set_of
from headrace.engine.redis import layout as redis
from headrace.engine.sql_files import Migration, migration, migrations
from headrace.engine.sqlite.connection import migrate as sqlite
from headrace.errors import MigrationNeeded, SchemaTooNew
from headrace.model.job import JobFilter
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, fail, retry

pytestmark = pytest.mark.new_store

# What a later version may want, where tables have columns.
COLUMNS = """
ALTER TABLE job ADD COLUMN colour TEXT;
ALTER TABLE history ADD COLUMN colour TEXT;
"""

Opener = Callable[[Migrate], Awaitable[Engine]]


def later(known: list[Migration], min_program: int | None) -> Migration:
    """The next migration after these."""
    header = "" if min_program is None else f"-- min_program: {min_program}\n"
    return migration(known[-1].number + 1, "9999_later", header + COLUMNS)


@contextmanager
def newer_program(
    patch: pytest.MonkeyPatch, *, refuses_older: bool = False
) -> Iterator[pytest.MonkeyPatch]:
    """A Headrace that knows one migration more, and on PostgreSQL has other functions."""
    with patch.context() as newer:
        for module in (sqlite, postgres):
            number = module.NEWEST + 1
            known = [*module.KNOWN, later(module.KNOWN, number if refuses_older else None)]
            newer.setattr(module, "KNOWN", known)
            newer.setattr(module, "NEWEST", number)
        newer.setattr(postgres, "FUNCTIONS", set_of({"now_and_then": FUNCTION}))
        number = redis.newest() + 1
        change = Migration(number, "9999_later", "", number if refuses_older else None)
        newer.setattr(redis, "LAYOUTS", (*redis.LAYOUTS, change))
        yield newer


FUNCTION = "CREATE OR REPLACE FUNCTION now_and_then() RETURNS integer RETURN 1;"


@pytest.fixture
async def open_with(engine_url: str) -> AsyncIterator[Opener]:
    """Opens engines that may or may not migrate, and closes them after the test."""
    opened: list[Engine] = []

    async def opener(migrate: Migrate) -> Engine:
        engine = open_engine(engine_url, clock=Clock(), migrate=migrate)
        opened.append(engine)
        await engine.open()
        return engine

    yield opener
    for engine in opened:
        await engine.close()


@pytest.fixture
async def outside(engine_url: str) -> AsyncIterator[Engine]:
    """An engine that is never opened."""
    engine = open_engine(engine_url, clock=Clock())
    yield engine
    await engine.close()


# What stores have been made with. Other text here would mean two kinds of stores with one number.
APPLIED = {
    "sqlite 0001_initial": "3fb9cfb3a7a0",
    "sqlite 0002_migrations": "f3de17b64682",
    "sqlite 0003_dead_workers": "9a2e18375422",
    "sqlite 0004_worker_schema": "69b4d0e2c526",
    "sqlite 0005_job_pages": "ed01a3ab31d1",
    "sqlite 0006_expiry": "13571ed48714",
    "sqlite 0007_rates": "311dee8ec63e",
    "postgres 0001_tables": "f5ea78314cb1",
    # Written anew once, with the schema's name in quotes: the same for every name that stores could
    # have until then, all of which need none.
    "postgres 0011_programs": "c9b2ef55c0ab",
    "postgres 0012_lane_admission": "e9ca8fd86b29",
    "postgres 0013_dead_workers": "ccd5dd176f0b",
    "postgres 0014_worker_schema": "308e0fa11910",
    "postgres 0015_admitted_at": "5cf26a977562",
    "postgres 0016_unsuccessful": "f7fe3057e87a",
    "postgres 0017_expiry": "c91328fb309e",
    "postgres 0018_lane_places": "4b3043551e44",
    "postgres 0019_rates": "06ebf3bc941a",
}


def test_migrations_that_stores_were_made_with_are_not_edited() -> None:
    """Add a migration instead. Comments may change."""
    found = {
        f"{package.rpartition('.')[2]} {each.name}": digest(each.text)
        for package in ("headrace.engine.sqlite", "headrace.engine.postgres")
        for each in migrations(package)
    }
    assert found == APPLIED


def digest(script: str) -> str:
    code = re.sub(r"--.*", "", script)
    return sha256(" ".join(code.split()).encode()).hexdigest()[:12]


async def do_everything(engine: Engine) -> None:
    """A bit of each verb that changes jobs."""
    worker = await a_worker(engine)
    kept = await enqueue(engine, lane="l", key="k")
    await enqueue(engine, lane="l")
    [first] = await claim(engine, worker, 5)
    assert first.id == kept
    assert await retry(engine, first)
    while jobs := await claim(engine, worker, 5):
        for job in jobs:
            assert await complete(engine, job, b"1")
    failing = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await fail(engine, job)
    assert await engine.rerun([failing]) == [failing]
    assert await engine.cancel([failing]) == {failing: True}
    scheduled = await enqueue(engine, delay=600)
    assert await engine.rerun([scheduled]) == [scheduled]
    [same] = await engine.insert([a_job(key="k")])
    assert (same.id, same.created) == (kept, False)
    assert len((await engine.list_jobs(JobFilter(), limit=50)).jobs) >= 4
    assert (await engine.promote_due(10)).moved == 0
    assert await engine.take_lost(10) == []
    assert await engine.prune(keep=0) >= 3
    await engine.cancel([scheduled])
    await engine.prune(keep=0)
    await engine.retire(worker)
    assert await engine.audit() == []


async def test_an_older_program_goes_on_beside_a_newer_one(
    open_with: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = await open_with("auto")
    before = await older.schema()
    with newer_program(monkeypatch):
        newer = await open_with("auto")
        assert (await newer.schema()).version == before.version + 1
    await do_everything(older)
    assert (await older.schema()).version == before.version + 1


@pytest.mark.parametrize("migrate", ["auto", "never"])
async def test_an_older_program_is_started_again_beside_a_newer_one(
    open_with: Opener, monkeypatch: pytest.MonkeyPatch, migrate: Migrate
) -> None:
    await open_with("auto")
    with newer_program(monkeypatch):
        await open_with("auto")
    restarted = await open_with(migrate)
    await do_everything(restarted)
    state = await restarted.schema()
    assert (state.version, state.pending, state.refused) == (state.known + 1, (), False)


async def test_a_migration_that_states_so_refuses_older_programs(
    open_with: Opener, outside: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_with("auto")
    with newer_program(monkeypatch, refuses_older=True):
        await open_with("auto")
    state = await outside.schema()
    assert state.refused
    match = f"know version {state.min_program}; .* up to {state.known}. Upgrade Headrace"
    for migrate in ("auto", "never"):
        with pytest.raises(SchemaTooNew, match=match):
            await open_with(migrate)
    with pytest.raises(SchemaTooNew, match=match):
        await outside.migrate()
    assert await outside.schema() == state


async def test_a_program_that_must_not_migrate_makes_nothing(
    open_with: Opener, outside: Engine
) -> None:
    for _ in range(2):
        with pytest.raises(MigrationNeeded, match=r"never.*headrace migrate"):
            await open_with("never")
    state = await outside.schema()
    assert (state.version, state.min_program) == (0, 0)
    assert state.pending
    await outside.migrate()
    await do_everything(await open_with("never"))


async def test_a_newer_program_that_must_not_migrate_leaves_the_store_as_it_is(
    open_with: Opener, outside: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = await open_with("auto")
    before = await outside.schema()
    with newer_program(monkeypatch):
        assert "9999_later" in str((await outside.schema()).pending)
        with pytest.raises(MigrationNeeded, match="9999_later"):
            await open_with("never")
    assert await outside.schema() == before
    await do_everything(older)


async def test_a_store_that_lacks_nothing_says_so(outside: Engine) -> None:
    empty = await outside.schema()
    assert (empty.version, empty.refused) == (0, False)
    await outside.migrate()
    done = await outside.schema()
    assert (done.version, done.pending, done.script) == (done.known, (), "")
    await outside.migrate()
    assert await outside.schema() == done


async def test_a_worker_says_which_schema_its_program_knows(
    open_with: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = await open_with("auto")
    await a_worker(older, "older")
    known = (await older.schema()).known
    with newer_program(monkeypatch):
        newer = await open_with("auto")
        await a_worker(newer, "newer")
    for engine in (older, newer):
        workers = {each.name: each.schema_version for each in await engine.workers()}
        assert workers == {"older": known, "newer": known + 1}
