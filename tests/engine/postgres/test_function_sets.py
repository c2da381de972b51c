"""Functions of different programs, side by side in one schema."""

from __future__ import annotations

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection import migrate as migrate_module
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.migrate import FUNCTIONS, NEWEST
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.sql import FunctionSet, set_of
from headrace.engine.sql_files import migration
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, complete, enqueue

pytestmark = pytest.mark.new_store

OTHER = set_of({"greet": "CREATE OR REPLACE FUNCTION greet() RETURNS integer RETURN 1;"})


async def sets(raw: Raw, address: Address) -> dict[str, int]:
    """Which sets are noted, and how many functions each has."""
    noted = await raw.fetch(f"SELECT hash FROM {address.quoted_schema}.function_set")
    names = await raw.fetch(
        "SELECT right(proname, 8) FROM pg_proc WHERE pronamespace = $1::regnamespace",
        address.schema,
    )
    found = [row[0] for row in names]
    assert set(found) == {row[0] for row in noted}
    return {row[0]: found.count(row[0]) for row in noted}


async def opened(url: str) -> PostgresEngine:
    engine = PostgresEngine(url, clock=Clock())
    await engine.open()
    return engine


def program(
    patch: pytest.MonkeyPatch, functions: FunctionSet, *, min_program: int | None = None
) -> None:
    """A later Headrace with these functions."""
    header = "" if min_program is None else f"-- min_program: {min_program}\n"
    later = migration(NEWEST + 1, "9999_later", f"{header}CREATE TABLE later (n integer);")
    patch.setattr(migrate_module, "KNOWN", [*migrate_module.KNOWN, later])
    patch.setattr(migrate_module, "NEWEST", NEWEST + 1)
    patch.setattr(migrate_module, "FUNCTIONS", functions)


def test_the_hash_is_of_code_not_of_comments() -> None:
    code = "CREATE OR REPLACE FUNCTION a() RETURNS integer RETURN b();\n"
    one = set_of({"a": code, "b": "-- Why.\nSELECT 1\n"})
    same = set_of({"a": code, "b": "-- Another reason.\n    -- and more\nSELECT 1\n"})
    other = set_of({"a": code, "b": "SELECT 2\n"})
    assert one.hash == same.hash != other.hash
    assert one.installed == (f"a_{one.hash}", f"b_{one.hash}")
    assert f"FUNCTION a_{one.hash}() RETURNS integer RETURN b_{one.hash}();" in one.scripts[0]


async def test_a_later_program_adds_its_functions_to_those_of_earlier_ones(
    postgres: PostgresEngine,
    raw: Raw,
    address: Address,
    engine_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        program(patch, OTHER)
        await (await opened(engine_url)).close()
    assert await sets(raw, address) == {FUNCTIONS.hash: len(FUNCTIONS.installed), OTHER.hash: 1}
    worker = await a_worker(postgres)
    await enqueue(postgres)
    [job] = await claim(postgres, worker)
    assert await complete(postgres, job)


async def test_a_migration_that_refuses_programs_drops_their_functions(
    raw: Raw, address: Address, engine_url: str, monkeypatch: pytest.MonkeyPatch, postgres: object
) -> None:
    with monkeypatch.context() as patch:
        program(patch, OTHER, min_program=NEWEST + 1)
        await (await opened(engine_url)).close()
        assert await sets(raw, address) == {OTHER.hash: 1}
    await raw.execute(f"DELETE FROM {address.quoted_schema}.migration WHERE version > {NEWEST}")
    await (await opened(engine_url)).close()  # for the audit of the fixture


async def test_functions_that_the_refusing_program_uses_itself_stay(
    postgres: PostgresEngine,
    raw: Raw,
    address: Address,
    engine_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        program(patch, FUNCTIONS, min_program=NEWEST + 1)
        later = await opened(engine_url)
        assert await sets(raw, address) == {FUNCTIONS.hash: len(FUNCTIONS.installed)}
        assert await enqueue(later)
        await later.close()
    known = f"SELECT schema_version FROM {address.quoted_schema}.function_set"
    assert await raw.fetchval(known) == NEWEST + 1


async def test_functions_that_are_missing_are_installed_again(
    postgres: PostgresEngine, raw: Raw, address: Address, engine_url: str
) -> None:
    """As after a restore that has left them out."""
    one = FUNCTIONS.installed[0]
    await raw.execute(f"DROP FUNCTION {address.quoted_schema}.{one}")
    await (await opened(engine_url)).close()
    assert await sets(raw, address) == {FUNCTIONS.hash: len(FUNCTIONS.installed)}


async def test_the_script_does_what_a_program_would_do(engine_url: str, address: Address) -> None:
    engine = PostgresEngine(engine_url, clock=Clock(), migrate=False)
    state = await engine.schema()
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(state.script)
    await connection.close()
    done = await engine.schema()
    assert (done.version, done.pending, done.script) == (NEWEST, (), "")
    await engine.open()
    worker = await a_worker(engine)
    await enqueue(engine, lane="l", key="k")
    [job] = await claim(engine, worker)
    assert await complete(engine, job)
    assert await engine.audit() == []
    await engine.close()
