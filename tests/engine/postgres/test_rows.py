"""Statements have the columns that are read of their rows."""

from __future__ import annotations

import pytest

from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.rows import CLAIMED
from headrace.engine.postgres.sql import query


@pytest.mark.parametrize("statement", ["exchange", "held", "lost"])
async def test_claimed_jobs_have_their_columns_in_order(
    postgres: PostgresEngine, statement: str
) -> None:
    async with postgres._common.hold() as connection:
        prepared = await connection.prepare(query(statement))
        names = [attribute.name for attribute in prepared.get_attributes()]
    expected = ["cancel_requested" if name == "seq" else name for name in CLAIMED]
    assert names[: len(CLAIMED)] == (list(CLAIMED) if statement == "exchange" else expected)
