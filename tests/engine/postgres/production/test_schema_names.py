"""A schema may have any name that PostgreSQL takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import parse_address, quoted
from headrace.engine.postgres.engine import PostgresEngine
from tests.conftest import Servers
from tests.engine.postgres.all_verbs import use_all_verbs, use_an_app
from tests.engine.postgres.test_roles import grant_documented
from tests.support.pgbouncer import PgBouncer
from tests.support.verbs import a_job, enqueue

NAMES = ["MyApp", "two words", 'with "quotes"', "it's 100% :a b, $1 \\ ;--", "Größe 東京 🚀"]


@pytest.fixture(params=NAMES)
async def odd_url(request: pytest.FixtureRequest, servers: Servers) -> AsyncIterator[str]:
    """A new store in a database of its own, in a schema with an odd name."""
    base = servers.url("postgres").removesuffix("/postgres")
    name = f"odd_{uuid4().hex[:12]}"
    raw = await asyncpg.connect(servers.url("postgres"))
    await raw.execute(f"CREATE DATABASE {name}")
    yield f"{base}/{name}?schema={quote(request.param)}"
    await raw.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await raw.close()


async def test_everything_works_in_a_schema_of_any_name(odd_url: str) -> None:
    engine = PostgresEngine(odd_url, clock=Clock())
    before = await engine.schema()
    assert before.script
    await engine.open()
    heard = asyncio.Event()
    stop = await engine.listen(heard.set, lambda _: None)
    await enqueue(engine)
    await asyncio.wait_for(heard.wait(), 10)
    assert (await engine.schema()).pending == ()
    for call in (within_psycopg, within_sqlalchemy):
        await call(engine)
    stop()
    await engine.cancel([each.id for each in await engine.insert([a_job()])])
    await engine.close()

    raw = await asyncpg.connect(engine.address.dsn)
    # The script that `headrace migrate --sql` prints does the same.
    await raw.execute(f"DROP SCHEMA {engine.address.quoted_schema} CASCADE")
    await raw.execute(before.script)
    schemas = await raw.fetch(
        "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'job'"
    )
    assert len(schemas) == 1
    await raw.close()
    again = PostgresEngine(odd_url, clock=Clock(), migrate=False)
    await again.open()
    await again.close()
    await use_an_app(odd_url)
    await use_all_verbs(odd_url)


async def within_psycopg(engine: PostgresEngine) -> None:
    connection = await asyncio.to_thread(lambda: psycopg.connect(engine.address.dsn))
    with connection:
        [inserted] = await engine.insert_within(connection, [a_job()])
    assert await engine.get([inserted.id])


async def within_sqlalchemy(engine: PostgresEngine) -> None:
    url = engine.address.dsn.replace("postgresql://", "postgresql+psycopg://")
    made = create_engine(url)
    with Session(made) as session, session.begin():
        [inserted] = await engine.insert_within(session, [a_job()])
    made.dispose()
    assert await engine.get([inserted.id])


async def test_a_role_without_rights_and_a_pooler_work_in_it_too(
    odd_url: str, servers: Servers
) -> None:
    owner = PostgresEngine(odd_url, clock=Clock())
    await owner.open()
    await owner.close()
    role = f"role_{uuid4().hex[:8]}"
    address = parse_address(odd_url)
    raw = await asyncpg.connect(address.dsn)
    await raw.execute(f"CREATE ROLE {role} LOGIN")
    await grant_documented(raw, address.quoted_schema, role)
    bouncer = PgBouncer(servers.running["postgres"].port, "transaction", users=[role])
    bouncer.start()
    try:
        await use_all_verbs(bouncer.in_front_of(odd_url).replace("postgres@", f"{role}@"))
    finally:
        bouncer.destroy()
        await raw.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await raw.close()


def test_names_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
