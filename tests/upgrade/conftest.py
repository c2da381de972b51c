"""One store, and programs of two installations on it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.conftest import ENGINES, Servers, store_url
from tests.crash import journal
from tests.crash.journal import Line
from tests.support.processes import Process, Processes, until
from tests.upgrade.installations import Installation, install_new, install_old

LIMIT = 60.0
"""Seconds that a program may take to be at work, on a machine that has much else to do."""

Kind = Literal["worker", "producer"]

# What no program of either installation may say. That a job is taken over from a killed worker is a
# warning, so warnings are let pass unless they speak of what a migration changes.
FORBIDDEN = re.compile(r"Traceback|Error\b|\bERROR\b|SchemaTooNew|MigrationNeeded|schema|column")


class Broken(AssertionError):
    """A program did not do what a rolling upgrade promises."""


class Program:
    """A worker or a producer of an installation, which may be started again."""

    def __init__(self, scene: Scene, installation: Installation, kind: Kind) -> None:
        self.scene = scene
        self.installation = installation
        self.kind = kind
        self.lives: list[Process] = []

    def __str__(self) -> str:
        return f"{self.installation.side} {self.kind}"

    @property
    def process(self) -> Process:
        """The present one."""
        return self.lives[-1]

    def start(self, **environment: str) -> None:
        """Start it, again if it has run before."""
        module = "tests.upgrade.program"
        command = [sys.executable, "-m", module]
        if self.kind == "worker":
            command = [self.installation.headrace, "worker", "--app", module, "--max-workers", "8"]
        changes = {
            "HEADRACE_URL": self.scene.url,
            "HEADRACE_LEASE_SECONDS": "3",
            journal.VARIABLE: str(self.scene.journal),
        }
        process = Process(
            command,
            folder=self.scene.folder,
            environment=self.installation.environment(**changes, **environment),
        )
        self.lives.append(process)
        self.scene.processes.started.append(process)

    async def at_work(self) -> None:
        """Wait until its present process has done something for a job."""
        event = b'"event":"end"' if self.kind == "worker" else b'"event":"acknowledged"'
        pid = b'"pid":%d,' % self.process.pid

        def done() -> bool:
            self.scene.check()
            # Not decoded: this is asked often, and there are many lines.
            lines = self.scene.journal.read_bytes() if self.scene.journal.exists() else b""
            return any(event in line and pid in line for line in lines.splitlines())

        await until(done, f"work of the {self}", LIMIT)

    async def stop(self) -> None:
        """Ask it to stop, and check that it did so as it should."""
        self.process.terminate()
        code = await self.process.ended()
        if code:
            raise Broken(f"the {self} ended with {code}: {self.process.said[-8000:]}")

    def check(self) -> None:
        """Raise if it has ended by itself, or said what it should not."""
        for process in self.lives:
            lines = process.said.splitlines()
            if lines and lines[-1].startswith((" ", "Traceback")) and process.code is None:
                continue  # it is in the middle of a traceback, whose end tells the reason
            for line in lines:
                if " INFO " not in line and FORBIDDEN.search(line):
                    raise Broken(f"the {self} said: {process.said[-8000:]}")
        if self.lives and self.process.code is not None:
            raise Broken(f"the {self} ended by itself: {self.process.said[-8000:]}")


class Scene:
    """A store and a log outside of it."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.url = url
        self.folder = folder
        self.processes = processes
        self.journal = folder / "journal.jsonl"
        self.programs: list[Program] = []

    def program(self, installation: Installation, kind: Kind, **environment: str) -> Program:
        """Start a program of an installation."""
        program = Program(self, installation, kind)
        self.programs.append(program)
        program.start(**environment)
        return program

    def check(self) -> None:
        """Raise if any program does not do what it should."""
        for program in self.programs:
            program.check()

    def lines(self, event: str) -> list[Line]:
        """What was written down of one kind."""
        return journal.read(self.journal, lambda line: line.event == event)

    def side(self, line: Line) -> str:
        """Which installation wrote a line."""
        return next(
            program.installation.side
            for program in self.programs
            if any(process.pid == line.pid for process in program.lives)
        )


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Headrace as it was before the last change of the schema."""
    return install_old(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Headrace as it is here."""
    return install_new(tmp_path_factory.mktemp("new"))


@pytest.fixture(params=ENGINES)
def family(request: pytest.FixtureRequest) -> str:
    """One engine of each kind."""
    return str(request.param)


@pytest.fixture
def scene(family: str, servers: Servers, tmp_path: Path) -> Iterator[Scene]:
    """A new store that nobody has opened."""
    with Processes(tmp_path) as processes:
        yield Scene(store_url(family, servers, tmp_path, new=True), tmp_path, processes)
