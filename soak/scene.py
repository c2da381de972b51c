"""A store and the programs on it, which are replaced one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

from chaos.clocks import Clocks
from chaos.scene import MARK, Program, bare_environment, end_marked
from chaos.stores import Store, open_store
from tests.support.processes import Process
from tests.support.servers import free_port

import headrace
from chaos import clocks
from soak import pulse
from soak.options import Options

# One worker and one server live as long as the run. Others are replaced again and again.
SERVERS = ("server", "replaced server")
KINDS = ("worker", "replaced worker", *SERVERS, "cron", "events", "load")
REPLACED = ("replaced worker", "replaced server")
TURNS = (*REPLACED, "cron", *REPLACED, "events")
SLOTS = 6
DAY = 86_400.0
START_LIMIT, STOP_LIMIT = 30.0, 20.0

CRON = """\
dispatcher: {min_cron_interval_seconds: 1, poll_interval_seconds: 5}
schedules:
  often: {expression: "*/6 * * * * *", task: plain, params: {number: 0}}
  seldom: {expression: "*/20 * * * * *", task: staged, params: {number: 0}, allow_overlap: false}
"""
QUEUE = """\
adapter: examples.folder_adapter:FolderAdapter
options: {folder: MESSAGES, forget_after_seconds: 10}
"""


class Scene:
    """Owns whatever a run has started, and ends it by pid."""

    def __init__(self, options: Options, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.ports = {kind: free_port() for kind in SERVERS}
        for name in ("store", "messages", "artifacts", "temporary", "pulses"):
            (folder / name).mkdir()
        (folder / "store").chmod(0o755)
        (folder / "cron.yaml").write_text(CRON, encoding="utf-8")
        queue = QUEUE.replace("MESSAGES", str(folder / "messages"))
        (folder / "queue.yaml").write_text(queue, encoding="utf-8")
        self.set_clock(0.0)
        self.store: Store = open_store(options.engine, folder / "store")
        self.places = {kind: Program(kind, kind, None) for kind in KINDS}
        self.restarts: Counter[str] = Counter()
        # Processes that ended though nobody has ended them: kind, exit code and last words.
        self.deaths: list[str] = []
        # Four and six: each is ended in both ways in turn.
        ways = itertools.cycle((True, True, False, False))
        self._turns = zip(itertools.cycle(TURNS), ways, strict=False)

    @property
    def present(self) -> list[Program]:
        """The places that have a process now."""
        return [each for each in self.places.values() if each.process is not None and each.alive]

    async def start(self) -> None:
        """Start the store, then the programs."""
        await self.store.start()
        async with headrace.App(self.store.url()):
            pass  # the schema is there now, for those who look inside
        for place in self.places.values():
            self.fill(place)
        await self.all_started()

    def fill(self, place: Program) -> None:
        """Start a new process in this place. Nobody has had its name before."""
        place.generation += 1
        place.wanted = True
        place.process = Process(
            self._command(place.kind),
            folder=self.folder,
            environment=self._environment(),
            own_session=True,
        )

    def look_for_deaths(self) -> None:
        """Start those again that have ended by themselves, and say so."""
        for place in self.places.values():
            if place.wanted and place.process is not None and not place.alive:
                said = place.process.said.strip()[-1_000:]
                self.deaths.append(f"{place.kind} ended with {place.process.code}: {said}")
                self.fill(place)

    async def replace_next(self) -> str:
        """Replace the process whose turn it is, in good order or without warning."""
        kind, in_order = next(self._turns)
        place = self.places[kind]
        if in_order:
            await self.stop(place)
        elif place.process is not None:
            place.process.kill()
        self.restarts[f"{kind}, {'stopped' if in_order else 'killed'}"] += 1
        self.fill(place)
        return kind

    async def stop(self, place: Program) -> None:
        """Ask a process to end, and see to it that it does."""
        place.wanted = False
        if place.process is None:
            return
        if place.alive:
            place.process.terminate()
        try:
            await place.process.ended(STOP_LIMIT)
        except AssertionError:
            self.deaths.append(f"{place.kind} did not stop within {STOP_LIMIT:g} s")
        place.process.destroy()

    async def go_to_next_day(self) -> None:
        """Stop everything, and let a worker and dispatchers find that a day has passed.

        Once more a day passes while they run: some things are looked after only then.
        """
        for kind in reversed(KINDS):
            await self.stop(self.places[kind])
        self.set_clock(1.1 * DAY)
        for kind in ("worker", "cron", "events"):
            self.fill(self.places[kind])
        await self.all_started()
        self.set_clock(2.2 * DAY)

    async def all_started(self) -> None:
        """Wait until every process has been heard of, or too long."""
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            if all(self.pulse(each) is not None for each in self.present):
                return
            await asyncio.sleep(0.1)

    def set_clock(self, ahead: float) -> None:
        """Move the engine's clock, as all processes see it."""
        clocks.write(self.folder / "clocks.json", Clocks(engine=ahead))

    def pulse(self, place: Program) -> pulse.Pulse | None:
        """What the present process of a place last told."""
        return pulse.read(self.folder / "pulses", place.pid)

    def close(self) -> None:
        """End every process of this run, by its pid."""
        for place in self.places.values():
            if place.process is not None:
                place.process.destroy()
        with contextlib.suppress(OSError):
            self.store.destroy()
        end_marked(self.mark)

    def _command(self, kind: str) -> list[str]:
        options = self.options
        headrace = [sys.executable, "-m", "headrace.cli"]
        match kind:
            case "load":
                urls = [f"http://127.0.0.1:{port}" for port in self.ports.values()]
                load = [sys.executable, "-m", "soak.load", str(options.seed), str(options.rate)]
                return [*load, str(self.folder / "messages"), *urls]
            case "server" | "replaced server":
                return [*headrace, "server", "--port", str(self.ports[kind])]
            case "cron":
                return [*headrace, "dispatcher", "cron", "--config", str(self.folder / "cron.yaml")]
            case "events":
                config = str(self.folder / "queue.yaml")
                return [*headrace, "dispatcher", "queue", "--config", config]
            case _:
                return [*headrace, "worker", "--max-workers", str(SLOTS)]

    def _environment(self) -> dict[str, str]:
        options = self.options
        return {
            **bare_environment(),
            "HEADRACE_URL": self.store.url(),
            "HEADRACE_APP": options.program,
            "HEADRACE_ARTIFACTS": str(self.folder / "artifacts"),
            "HEADRACE_LEASE_SECONDS": str(options.lease),
            "HEADRACE_GRACE_SECONDS": str(options.grace),
            "HEADRACE_HISTORY_SECONDS": str(options.history),
            "TMPDIR": str(self.folder / "temporary"),
            pulse.FOLDER: str(self.folder / "pulses"),
            clocks.CLOCK: str(self.folder / "clocks.json"),
            MARK: self.mark,
        }
