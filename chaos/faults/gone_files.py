"""SQLite's file deleted or replaced under a running program.

What was in it is gone, so this happens to a store of its own beside the run's: its producer must
notice it within a second, and acknowledge nothing into the void from then on.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import sys
import time
from pathlib import Path

from tests.support.processes import Process

import headrace
from chaos import journal
from chaos.faults.base import Fault
from chaos.journal import Journal
from chaos.judge import Violation

NOTICED = 1.0
"""Within so many seconds a program has to notice it."""

# What a busy machine may add.
ALLOWANCE = 0.5
GOES_ON = 1.5
LIMIT = 20.0


class GoneFile(Fault):
    """The file is deleted, or another is put in its place."""

    name = "file deleted"
    engines = ("sqlite",)
    weight = 0.5

    def draw(self, chance: random.Random) -> None:
        self.how = chance.choice(["deleted", "deleted with its log", "replaced"])
        self.folder = self.scene.folder / f"gone-{chance.getrandbits(32):08x}"

    @property
    def path(self) -> Path:
        """The file of the store beside."""
        return self.folder / "beside.db"

    async def begin(self) -> None:
        self.folder.mkdir()
        log = self.folder / "journal.jsonl"
        Journal(log).close()
        environment = {
            **self.scene.environment(),
            "HEADRACE_URL": f"sqlite:///{self.path}",
            journal.VARIABLE: str(log),
        }
        command = [sys.executable, "-m", self.scene.options.producer, "beside", "1", "60"]
        producer = Process(command, folder=self.folder, environment=environment, own_session=True)
        try:
            await self._acknowledged(log)
            at = time.monotonic()
            self.remove()
            await asyncio.sleep(NOTICED + ALLOWANCE + GOES_ON)
        finally:
            producer.kill()
        await self._judge(log, at)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _acknowledged(self, log: Path) -> None:
        """Wait until the producer is at work."""
        end = time.monotonic() + LIMIT
        while len(journal.read(log)) <= 5:
            if time.monotonic() > end:
                raise TimeoutError("the producer of the store beside did not start")
            await asyncio.sleep(0.05)

    def remove(self) -> None:
        """Take the file away."""
        if self.how == "replaced":
            other = self.path.with_suffix(".other")
            sqlite3.connect(other).close()
            os.replace(other, self.path)
            return
        self.path.unlink()
        if self.how == "deleted with its log":
            for end in ("-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)

    async def _judge(self, log: Path, removed_at: float) -> None:
        """Jobs that were acknowledged when it should have been noticed are in the file that is
        there now, or they are lost.
        """
        late = [
            line.job
            for line in journal.read(log)
            if line.event == "acknowledged" and line.at > removed_at + NOTICED + ALLOWANCE
        ]
        if not late:
            return
        async with headrace.App(settings=headrace.Settings(url=f"sqlite:///{self.path}")) as app:
            there = {job.id for job in await app.engine.get(late)}
        gone = [job for job in late if job not in there]
        if gone:
            detail = f"the file was {self.how}: {len(gone)} jobs acknowledged later are nowhere"
            self.scene.found.append(Violation("void", gone[0], detail))


FAULTS = (GoneFile,)
