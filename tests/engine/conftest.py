"""The conformance suite's fixtures: an empty store on each engine, and a second door to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from tests.conftest import VERSIONS, Servers, store_url
from tests.support.pgbouncer import PgBouncer

# HEADRACE_TEST_POOLER=transaction runs all of it on PostgreSQL behind PgBouncer, or =session.
POOLER = os.environ.get("HEADRACE_TEST_POOLER", "")

Opener = Callable[[], Awaitable[Engine]]


SEVERAL = "several"
"""Two stores as one engine: the queue "default" is in one of them, all others in the other."""
# What spreads over stores, or could be told apart there.
ON_SEVERAL: tuple[str, ...] = (
    "cancel",
    "children",
    "claim",
    "follow",
    "insert",
    "leases",
    "settle",
    "steering",
)
if os.environ.get("HEADRACE_TEST_VERSIONS") == "all":
    ON_SEVERAL += ("comes_back", "insert_record", "listing", "notes", "records", "reserved")
    ON_SEVERAL += ("signals", "suspended", "views", "workers")
# What several stores do in another way (decision 0053): history is bounded in each of them, and of
# the records only those of jobs are in the store of a job.
OTHERWISE_ON_SEVERAL = frozenset(
    (
        "test_children_are_not_pruned_before_their_parent",
        "test_a_finished_job_is_run_again_without_some_of_its_entries",
        "test_of_several_who_run_a_job_again_without_entries_one_is_accepted",
    )
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on each engine, unless its folder is about one of them."""
    definitions = metafunc._arg2fixturedefs.get("engine_url", ())
    if definitions and definitions[-1].func.__module__ == __name__:
        module = metafunc.module.__name__.rpartition(".")[2]
        as_one = metafunc.function.__name__ not in OTHERWISE_ON_SEVERAL
        several = [SEVERAL] if module.removeprefix("test_") in ON_SEVERAL and as_one else []
        metafunc.parametrize("engine_url", [*VERSIONS, *several], indirect=True)


@pytest.fixture
def engine_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """A URL of a store that nobody else uses."""
    new = "new_store" in request.keywords
    name = "sqlite" if request.param == SEVERAL else request.param
    url = store_url(name, servers, tmp_path, new=new)
    if POOLER and request.param == "postgres":
        bouncer: PgBouncer = request.getfixturevalue("pooler")
        signals = "pooler=session"
        if POOLER == "transaction":
            signals = f"listen=127.0.0.1:{servers.running['postgres'].port}"
        return f"{bouncer.in_front_of(url)}&{signals}"
    return url


@pytest.fixture(scope="session")
def pooler(servers: Servers) -> Iterator[PgBouncer]:
    """In front of PostgreSQL, if that is asked for."""
    servers.url("postgres")
    bouncer = PgBouncer(servers.running["postgres"].port, POOLER)
    bouncer.start()
    yield bouncer
    bouncer.destroy()


@pytest.fixture
def stores(request: pytest.FixtureRequest, engine_url: str) -> dict[str, str]:
    """Further stores, by queue: none but where several are tested."""
    several = request.node.callspec.params.get("engine_url") == SEVERAL
    return {"default": engine_url.replace(".db", "-2.db")} if several else {}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def open_another(
    engine_url: str, stores: dict[str, str], clock: Clock
) -> AsyncIterator[Opener]:
    """Opens further engines on the same store, as other processes would, on the same clock."""
    opened: list[Engine] = []

    async def opener() -> Engine:
        engine = open_engine(engine_url, stores=stores, clock=clock)
        await engine.open()
        opened.append(engine)
        return engine

    yield opener
    for engine in opened:
        await engine.close()


@pytest.fixture
async def engine(open_another: Opener) -> AsyncIterator[Engine]:
    """An empty engine. When the test is over, its invariants must hold."""
    engine = await open_another()
    yield engine
    assert await engine.audit() == []
