"""A user who may use the tables and change nothing else does all that programs do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineError
from tests.engine.postgres.all_verbs import use_all_verbs, use_an_app
from tests.engine.postgres.conftest import Raw

ROOT = Path(__file__).parents[3]


def documented_grants(schema: str, role: str) -> str:
    """The grants of docs/how-to/operate.md."""
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
    [grants] = [text for text in page.split("```sql\n")[1:] if text.startswith("GRANT")]
    return grants.partition("```")[0].replace("headrace", schema).replace("app_user", role)


async def grant_documented(raw: Raw, quoted_schema: str, role: str) -> None:
    """Run them for a schema of any name."""
    for each in documented_grants("{schema}", role).strip().removesuffix(";").split(";"):
        await raw.execute(each.replace("{schema}", quoted_schema))


@pytest.fixture
async def role(address: Address, engine_url: str) -> AsyncIterator[str]:
    """A user with no rights of its own on a store that another has migrated."""
    owner = PostgresEngine(engine_url, clock=Clock())
    await owner.migrate()
    await owner.close()
    name = f"role_{address.schema}"
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    await connection.close()


@pytest.fixture
async def limited_url(role: str, address: Address, engine_url: str) -> str:
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(documented_grants(address.schema, role))
    await connection.close()
    return engine_url.replace("postgres@", f"{role}@")


async def test_jobs_are_enqueued_run_and_seen_without_the_right_to_change_tables(
    limited_url: str,
) -> None:
    await use_an_app(limited_url)


async def test_every_group_of_verbs_works_without_the_right_to_change_tables(
    limited_url: str,
) -> None:
    await use_all_verbs(limited_url)


async def test_without_the_grants_nothing_can_be_used_and_the_remedy_is_named(
    role: str, engine_url: str
) -> None:
    engine = PostgresEngine(engine_url.replace("postgres@", f"{role}@"), clock=Clock())
    with pytest.raises(EngineError, match=r"USAGE is missing.*docs/how-to/operate\.md"):
        await engine.open()


async def test_a_user_without_the_right_is_told_so_when_something_is_missing(
    limited_url: str, address: Address, raw_owner: Raw
) -> None:
    await raw_owner.execute(
        f"DROP FUNCTION {address.quoted_schema}.{await one_function(raw_owner, address)}"
    )
    engine = PostgresEngine(limited_url, clock=Clock())
    with pytest.raises(EngineError, match="Grant the user CREATE"):
        await engine.open()


@pytest.fixture
async def raw_owner(address: Address) -> AsyncIterator[Raw]:
    connection = await asyncpg.connect(address.dsn)
    yield connection
    await connection.close()


async def one_function(raw: Raw, address: Address) -> str:
    """The name of some function of the set that is installed."""
    found: str = await raw.fetchval(
        "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace ORDER BY 1 LIMIT 1",
        address.schema,
    )
    return found
