"""A store, the programs on it, and the lines between them: everything that can be broken."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from tests.support.processes import Process

import headrace
from chaos import clocks, journal, tasks, volume
from chaos.clocks import Clocks
from chaos.journal import Journal, Line
from chaos.judge import Violation
from chaos.options import Options
from chaos.proxy import Proxy
from chaos.stores import Store, open_store

ROOT = Path(__file__).parent.parent
MARK = "HEADRACE_TEST_CHAOS_RUN"
"""Tells the processes of a run from all others, so that those that were left are found."""

LOOK_SECONDS = 0.1


class Program:
    """One place for a process: it is filled again when the process has died."""

    def __init__(self, kind: str, name: str, proxy: Proxy | None) -> None:
        self.kind = kind
        self.name = name
        self.proxy = proxy
        self.process: Process | None = None
        self.generation = 0
        # Whether somebody has to fill the place when it is empty.
        self.wanted = True
        self.frozen = False

    @property
    def pid(self) -> int:
        """Of the present process; 0 if there is none."""
        return 0 if self.process is None else self.process.pid

    @property
    def alive(self) -> bool:
        """Whether there is a process."""
        return self.process is not None and self.process.code is None

    def freeze(self) -> None:
        """Stop it as a machine that hangs would."""
        if self.process is not None and self.alive:
            self.frozen = True
            self.process.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        if self.process is not None and self.frozen:
            self.frozen = False
            if self.alive:
                self.process.thaw()


class Scene:
    """Owns whatever a run has started, and ends it by pid."""

    def __init__(self, options: Options, folder: Path, place: Path) -> None:
        self.options = options
        self.folder = folder
        # Where the store's data is: a file system of its own, if that can be had.
        self.place = place
        self.mark = secrets.token_hex(8)
        self.path = folder / "journal.jsonl"
        self.journal = Journal(self.path)
        self.store: Store = open_store(options.engine, place, fsync=options.fsync)
        self.programs: list[Program] = []
        # What faults have found by themselves.
        self.found: list[Violation] = []
        # What killed workers had started, and by when it has to be gone.
        self.families: list[tuple[float, psutil.Process]] = []
        self._supervisor: asyncio.Task[None] | None = None
        self._app: headrace.App | None = None

    @property
    def workers(self) -> list[Program]:
        """The places of workers."""
        return [each for each in self.programs if each.kind == "worker"]

    @property
    def producers(self) -> list[Program]:
        """The places of producers."""
        return [each for each in self.programs if each.kind == "producer"]

    @property
    def proxies(self) -> Iterator[Proxy]:
        """Every line to the server."""
        return (each.proxy for each in self.programs if each.proxy is not None)

    @property
    def app(self) -> headrace.App:
        """The driver's own door to the store, around every proxy."""
        if self._app is None:
            settings = headrace.Settings(url=self.store.url())
            self._app = tasks.register(headrace.App(settings=settings), self.journal)
        return self._app

    async def start(self) -> None:
        """Start the store, then the lines, then the programs."""
        await self.store.start()
        await self.app.open()
        for kind, count in (("worker", self.options.workers), ("producer", 2)):
            for number in range(count):
                proxy = None if self.store.port is None else Proxy(self.store.port)
                if proxy is not None:
                    await proxy.start()
                self.programs.append(Program(kind, f"{kind}{number + 1}", proxy))
        for each in self.programs:
            clocks.write(self.clock_file(each), Clocks())
            self.fill(each)
        self._supervisor = asyncio.create_task(self._supervise())

    def fill(self, place: Program, *, new_name: bool = False) -> None:
        """Start a process in this place. A worker has a new name, or that of the one before."""
        place.generation += 1
        place.frozen = False
        name = f"{place.name}-{place.generation}" if new_name else place.name
        python = [sys.executable, "-m"]
        if place.kind == "worker":
            command = [
                *(*python, "headrace.cli", "worker", "--quiet"),
                *("--app", self.options.program, "--name", name),
                *("--max-workers", str(self.options.slots)),
            ]
        else:
            # Keys and chance of its own: what the one before asked for last is not known.
            generation = f"{place.name}-{place.generation}"
            seed = f"{self.options.seed}{place.name[-1]}{place.generation:04}"
            rate = str(self.options.rate / 2)
            command = [*python, self.options.producer, generation, seed, rate]
        place.process = Process(
            command,
            folder=self.folder,
            environment=self._environment(place),
            own_session=True,
        )

    def empty(self, place: Program) -> None:
        """Kill the process in this place and leave it empty until it is filled."""
        place.wanted = False
        if place.process is not None and place.alive:
            family = children(place.pid)
            place.process.kill()
            self._note_death(place)
            # Others take over when the lease has lapsed: nothing may run beside them then.
            limit = time.monotonic() + self.options.lease
            self.families += [(limit, each) for each in family]

    def clock_file(self, place: Program) -> Path:
        """The file that sets the clocks of a program."""
        return self.folder / f"clocks-{place.name}.json"

    def move_lines(self) -> None:
        """The server is elsewhere now: new connections go there."""
        for proxy in self.proxies:
            if self.store.port is not None:
                proxy.target = self.store.port
                proxy.reset()

    async def reopen_app(self) -> None:
        """The driver's own door may lead to a server that is gone."""
        app, self._app = self._app, None
        if app is not None:
            with contextlib.suppress(headrace.HeadraceError, TimeoutError):
                await asyncio.wait_for(app.close(), 5)

    async def heal(self) -> None:
        """Everything works again, whatever a fault has left."""
        if volume.is_own(self.place):
            await asyncio.to_thread(volume.widen, self.place)
        await self.store.ensure_up()
        for proxy in self.proxies:
            proxy.heal()
        for each in self.programs:
            each.thaw()
            each.wanted = True
        for each in self.workers:
            clocks.write(self.clock_file(each), Clocks())

    async def stop_producers(self, limit: float) -> None:
        """Let them finish the requests that are under way."""
        for each in self.producers:
            each.wanted = False
            if each.process is not None and each.alive:
                each.process.terminate()
        end = time.monotonic() + limit
        while any(each.alive for each in self.producers):
            if time.monotonic() > end:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """End every process of this run, by its pid."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
        for each in self.programs:
            if each.process is not None:
                each.process.destroy()
        await self.reopen_app()
        for proxy in self.proxies:
            await proxy.close()
        self.store.destroy()
        self.end_left_over()
        self.journal.close()

    def end_left_over(self) -> list[str]:
        """Kill what programs of this run have left running. Answers their command lines."""
        return end_marked(self.mark)

    def output(self, name: str) -> str:
        """The end of what the present process of a place has written."""
        [place] = [each for each in self.programs if each.name == name]
        return "" if place.process is None else place.process.said[-2_000:]

    async def _supervise(self) -> None:
        """Fill places whose process has died by itself, as a service manager does."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for each in self.programs:
                if each.wanted and not each.alive:
                    self._note_death(each)
                    self.fill(each)
            self._look_for_left_over()

    def _look_for_left_over(self) -> None:
        """Processes that a killed worker had started, and that outlive its lease."""
        now = time.monotonic()
        due = [process for limit, process in self.families if limit <= now]
        self.families = [each for each in self.families if each[0] > now]
        for process in due:
            with contextlib.suppress(psutil.Error):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    command = " ".join(process.cmdline())[:80]
                    self.found.append(
                        Violation("left running", "", f"{command!r} of a worker that was killed")
                    )
                    process.kill()

    def _note_death(self, place: Program) -> None:
        if place.process is not None:
            self.journal.write(Line(event="died", number=place.pid, name=place.name))

    def environment(self) -> dict[str, str]:
        """What every program of the run is told."""
        return {
            **bare_environment(),
            "HEADRACE_LEASE_SECONDS": str(self.options.lease),
            "HEADRACE_GRACE_SECONDS": "2",
            journal.VARIABLE: str(self.path),
            MARK: self.mark,
        }

    def _environment(self, place: Program) -> dict[str, str]:
        return {
            **self.environment(),
            "HEADRACE_URL": self.store.url(None if place.proxy is None else place.proxy.port),
            clocks.CLOCK: str(self.clock_file(place)),
        }


def bare_environment() -> dict[str, str]:
    """This process's own, without any setting that a developer may have, and this code."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADRACE_", "WORKER_"))
    }
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def end_marked(mark: str) -> list[str]:
    """Kill the processes of a run that are left. Answers their command lines."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                found.append(" ".join(process.cmdline()))
                process.kill()
    return found


def children(pid: int) -> list[psutil.Process]:
    """What a process has started, and what that has started."""
    try:
        found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return found
