"""Long results are read beside the connection that the other verbs of a worker use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chaos.proxy import Direction, Proxy

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import PART_BYTES
from headrace.engine.open import open_engine
from tests.conftest import VERSIONS, Servers, store_url
from tests.support.verbs import a_worker, claim, complete, enqueue

LIMIT = 60.0
LONG = b'"' + b"x" * 1_500_000 + b'"'


# A file has no line that could be slow.
@pytest.fixture(params=[name for name in VERSIONS if name != "sqlite"])
def engine_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """A URL of a store that nobody else uses."""
    return store_url(request.param, servers, tmp_path)


@pytest.fixture
async def line(engine_url: str) -> AsyncIterator[Proxy]:
    """A line to the server that a test makes slow, or breaks."""
    proxy = Proxy(urlsplit(engine_url).port or 0)
    await proxy.start()
    yield proxy
    proxy.heal()
    await proxy.close()


@pytest.fixture
async def far(engine_url: str, line: Proxy, clock: Clock) -> AsyncIterator[Engine]:
    """The engine behind that line."""
    port = urlsplit(engine_url).port
    engine = open_engine(engine_url.replace(f":{port}", f":{line.port}"), clock=clock)
    await engine.open()
    yield engine
    line.heal()
    await engine.close()


async def test_no_verb_waits_behind_long_results(
    engine: Engine, far: Engine, line: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_under_way = asyncio.Event()
    passage = line.passage

    async def watched(direction: Direction, size: int) -> bool:
        if size > 10_000:
            long_under_way.set()
        return await passage(direction, size)

    job_id = await enqueue(engine)
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    await complete(engine, job, LONG)
    # Connections are opened, scripts and statements made known.
    await far.get_part([job_id], PART_BYTES)
    await far.now()
    await claim(far, worker)
    monkeypatch.setattr(line, "passage", watched)
    line.rate = 50_000
    asked = asyncio.create_task(far.get_part([job_id], PART_BYTES))
    try:
        async with asyncio.timeout(LIMIT):
            await long_under_way.wait()
            await far.now()
            await claim(far, worker)
        assert not asked.done()
        line.heal()
        [found], rest = await asyncio.wait_for(asked, LIMIT)
    finally:
        asked.cancel()
    assert found.result_json == LONG
    assert rest == []
