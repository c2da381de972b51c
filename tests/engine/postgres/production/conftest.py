"""Servers as people run them: behind PgBouncer, in pairs, with TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Servers
from tests.support.pgbouncer import MODES, PgBouncer


@pytest.fixture
def direct_url(servers: Servers) -> str:
    """A store of its own on the server from the wheel."""
    return servers.store("postgres")


@pytest.fixture(scope="package", params=MODES)
def bouncer(request: pytest.FixtureRequest, servers: Servers) -> Iterator[PgBouncer]:
    """A pooler in each mode."""
    yield from started(PgBouncer(_port(servers), request.param))


@pytest.fixture(scope="package", params=MODES)
def swallower(request: pytest.FixtureRequest, servers: Servers) -> Iterator[PgBouncer]:
    """A pooler in each mode that takes settings at the start of a session, and does nothing."""
    yield from started(PgBouncer(_port(servers), request.param, swallows=True))


@pytest.fixture(scope="package")
def narrow(servers: Servers) -> Iterator[PgBouncer]:
    """A pooler in transaction mode with a single session for each database."""
    yield from started(PgBouncer(_port(servers), "transaction", size=1))


def started(bouncer: PgBouncer) -> Iterator[PgBouncer]:
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.destroy()


def _port(servers: Servers) -> int:
    servers.url("postgres")
    return servers.running["postgres"].port
