"""A worker that runs until nothing is left does not end before a claim has said so."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

import headrace
from headrace.orchestrator.run_until_idle import POLL_SECONDS
from tests.orchestrator.conftest import Worker


async def test_a_job_of_a_callers_transaction_in_a_lane_is_run_by_a_slow_engine(
    app: headrace.App, url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In PostgreSQL it is not ready before the claim that lets it into its lane is answered."""
    ran: list[int] = []

    @app.task(lane="user:{user}")
    async def fine(user: int) -> None:
        ran.append(user)

    if url.startswith("postgresql"):
        connection = await asyncpg.connect(url.partition("?")[0])
        async with connection.transaction():
            await app.enqueue("fine", {"user": 7}, conn=connection)
        await connection.close()
    else:
        await app.enqueue("fine", {"user": 7})
    exchange = app.engine.exchange

    async def slow(*args: Any, **options: Any) -> Any:
        await asyncio.sleep(4 * POLL_SECONDS)
        return await exchange(*args, **options)

    monkeypatch.setattr(app.engine, "exchange", slow)
    await worker(app).run_until_idle()
    assert ran == [7]
