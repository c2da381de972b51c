"""One run: start everything, load it, replace it, look at it every few seconds, judge it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from chaos.stores import ServerStore

from soak.judge import BOUNDS, Judgement, judge, kept_for
from soak.meters import Levels, files_in, of_process
from soak.options import Options
from soak.rows import look_inside
from soak.scene import Scene
from soak.series import Book, Series

FOLDERS = {"artifacts": "artifact", "messages": "message", "temporary": "temporary"}
DAY_AFTER_LOOK = 2.0


@dataclass
class Result:
    """What a run has found."""

    options: Options
    book: Book = field(default_factory=Book)
    judgements: list[Judgement] = field(default_factory=list)
    jobs: int = 0
    pruned: int = 0
    restarts: Counter[str] = field(default_factory=Counter)
    deaths: list[str] = field(default_factory=list)
    # Log lines by process and level, and those about trouble by what they say.
    levels: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    # Of one core, by all processes and the store's server together.
    processor: float = 0.0
    # Rows that are left a day later; None if it was not waited for.
    left: dict[str, float] | None = None
    stopped: bool = False

    @property
    def growing(self) -> list[Judgement]:
        """What has not come to rest."""
        return [each for each in self.judgements if each.verdict == "grows"]


OnProgress = Callable[[Result, str], None]


async def run(
    options: Options,
    on_progress: OnProgress = lambda *_: None,
    stopping: asyncio.Event | None = None,
) -> Result:
    """Do one run and clean up after it, whatever happens. When stopped it judges what there is."""
    result = Result(options)
    with tempfile.TemporaryDirectory(prefix="headrace-soak-") as name:
        os.chmod(name, 0o755)  # PostgreSQL runs as another user
        scene = Scene(options, Path(name))
        try:
            await scene.start()
            await Driver(scene, result, on_progress, stopping or asyncio.Event()).drive()
        finally:
            scene.close()
    return result


class Driver:
    """Looks at a scene and has its processes replaced."""

    def __init__(
        self, scene: Scene, result: Result, on_progress: OnProgress, stopping: asyncio.Event
    ) -> None:
        self.scene = scene
        self.options = scene.options
        self.result = result
        self.on_progress = on_progress
        self.stopping = stopping
        self.levels = Levels()
        # What each process had done when it was last heard of: jobs that ended, jobs pruned.
        self._done: dict[int, tuple[int, int]] = {}
        self._times: dict[int, float] = {}
        result.restarts, result.deaths = scene.restarts, scene.deaths
        result.levels, result.messages = self.levels.counts, self.levels.messages

    async def drive(self) -> None:
        """From the first job to the judgement."""
        began = time.monotonic()
        end = began + self.options.seconds
        restart_at = began + self.options.restart_every
        while time.monotonic() < end and not self.stopping.is_set():
            look_at = time.monotonic() + self.options.look_every
            await self.look()
            self.tell("")
            if time.monotonic() >= restart_at:
                restart_at += self.options.restart_every
                self.tell(f"replaced {await self.scene.replace_next()}")
            await self._pause(min(look_at, end) - time.monotonic())
        await self.look()
        self.result.seconds = time.monotonic() - began
        self.result.processor = sum(self._times.values()) / self.result.seconds
        self.result.stopped = self.stopping.is_set()
        if self.options.day_after and not self.result.stopped:
            self.result.left = await self.day_after()
        self.tell("judging")
        left = self.result.left
        self.result.judgements = [judge(each, left) for each in self.result.book.series.values()]

    async def look(self) -> None:
        """One look at every process and into the store."""
        self.scene.look_for_deaths()
        for place in self.scene.present:
            pulse = self.scene.pulse(place)
            if pulse is not None:
                self._done[place.pid] = pulse.ended, pulse.pruned
        self.result.jobs = sum(ended for ended, _ in self._done.values())
        self.result.pruned = sum(pruned for _, pruned in self._done.values())
        jobs, book = self.result.jobs, self.result.book
        for place in self.scene.present:
            pulse = self.scene.pulse(place)
            if pulse is None or place.process is None:
                continue  # it is about to start
            figures = of_process(place.pid)
            if figures:
                figures["asyncio tasks"] = "count", pulse.tasks
                figures["memory blocks"] = "blocks", pulse.blocks
            for what, (unit, value) in figures.items():
                book.note(place.kind, what, unit, value, jobs=jobs, life=place.generation)
            self.levels.look(place.kind, place.process.output)
        inside = await look_inside(self.scene.store)
        book.note("store", "size", "store MB", inside.megabytes, jobs=jobs)
        if inside.connections is not None:
            book.note("store", "connections", "count", inside.connections, jobs=jobs)
        book.note_all("store", "rows", inside.rows | self._files(), jobs=jobs)
        self._count_times()

    async def day_after(self) -> dict[str, float]:
        """What is left when everything that is kept for a day may go."""
        self.tell("a day later")
        await self.scene.go_to_next_day()
        end = time.monotonic() + self.options.patience
        while True:
            rows = (await look_inside(self.scene.store)).rows | self._files()
            if not too_many(rows) or time.monotonic() > end or self.stopping.is_set():
                return rows
            self.tell(f"a day later: {sum(rows.values()):,.0f} rows")
            await self._pause(DAY_AFTER_LOOK)

    def tell(self, doing: str) -> None:
        """Say where the run is."""
        self.on_progress(self.result, doing)

    def _files(self) -> dict[str, float]:
        return {
            f"files {name}": float(files_in(self.scene.folder / folder))
            for folder, name in FOLDERS.items()
        }

    def _count_times(self) -> None:
        """Processor time by process, children included, also of those that have ended since."""
        store = self.scene.store
        pids = [place.pid for place in self.scene.present]
        if isinstance(store, ServerStore):
            pids += [process.pid for process in store.family()]
        for pid in pids:
            with contextlib.suppress(psutil.Error):
                used = psutil.Process(pid).cpu_times()
                children = used.children_user + used.children_system
                self._times[pid] = used.user + used.system + children

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), max(0.0, seconds))


def too_many(rows: dict[str, float]) -> list[str]:
    """Tables that have more than may be left a day later."""
    return [
        name
        for name, count in rows.items()
        if count > max(BOUNDS["rows"].least, kept_for(Series("store", name, "rows"))[1])
    ]
