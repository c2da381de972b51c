"""One run: start everything, break it again and again, heal it, and have it judged."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headrace
from chaos import journal
from chaos.faults.base import Fault
from chaos.faults.registry import bursts, fitting
from chaos.journal import Line
from chaos.judge import Final, Judgement, Violation, judge
from chaos.losses import set_apart
from chaos.options import Options
from chaos.recovery import Progress, Recovery, Watch
from chaos.scene import Program, Scene
from chaos.volume import volume

# A fault that cannot be begun or ended within this has met another one.
PATIENCE = 15.0
BATCH = 500
SHOWN = 100
# So much of a log says what a worker was doing.
TOLD = 6_000


@dataclass
class Injected:
    """A fault that has happened, and how long it took until jobs were completed again."""

    name: str
    at: float
    seconds: float
    recovery: Recovery | None = None


@dataclass
class Result:
    """What a run has found."""

    options: Options
    faults: list[Injected] = field(default_factory=list)
    # Faults that could not be begun, by name.
    missed: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    judgement: Judgement = field(default_factory=Judgement)
    seconds: float = 0.0
    quiet_seconds: float | None = None
    left_over: list[str] = field(default_factory=list)
    # What was lost where the documentation says that it may be, by what happened.
    allowed: dict[str, dict[str, Any]] = field(default_factory=dict)
    # What was written down about the first jobs for which a promise was broken.
    evidence: dict[str, list[Line]] = field(default_factory=dict)


OnProgress = Callable[[Result, str], None]


async def run(options: Options, on_progress: OnProgress = lambda *_: None) -> Result:
    """Do one run and clean up after it, whatever happens."""
    result = Result(options)
    with tempfile.TemporaryDirectory(prefix="headrace-chaos-") as name, volume(Path(name)) as place:
        os.chmod(name, 0o755)  # PostgreSQL runs as another user
        scene = Scene(options, Path(name), place)
        try:
            await scene.start()
            await Driver(scene, result, on_progress).drive()
        finally:
            await asyncio.shield(scene.close())
    return result


class Driver:
    """Breaks a scene by the seed, and watches it recover."""

    def __init__(self, scene: Scene, result: Result, on_progress: OnProgress) -> None:
        self.scene = scene
        self.options = scene.options
        self.result = result
        self.on_progress = on_progress
        self.watch = Watch(scene)
        result.progress = self.watch.progress

    async def drive(self) -> None:
        """From the first job to the judgement."""
        began = time.monotonic()
        await self.watch.after(began, [self.scene.workers])
        end = time.monotonic() + self.options.seconds
        kinds = fitting(self.scene)
        for burst in bursts(self.scene, kinds) if kinds else ():
            if time.monotonic() >= end:
                break
            await self.break_and_heal(burst)
        await asyncio.sleep(end - time.monotonic())
        self.tell("healing")
        await self.scene.heal()
        await self.scene.stop_producers(self.options.quiet_limit)
        self.result.quiet_seconds = await self.quiet()
        self.result.seconds = time.monotonic() - began
        self.tell("judging")
        await self.judge()

    async def break_and_heal(self, burst: list[tuple[float, Fault]]) -> None:
        """Have some faults at once, then nothing broken, then jobs completed again."""
        happened = await asyncio.gather(*(self.inject(after, fault) for after, fault in burst))
        await self.scene.heal()
        calm = time.monotonic()
        self.scene.journal.write(Line(event="calm", at=calm))
        real = [(fault, each) for (_, fault), each in zip(burst, happened, strict=True) if each]
        if not real:
            return
        recoveries = await self.watch.after(calm, [fault.victims for fault, _ in real])
        for (_, injected), recovery in zip(real, recoveries, strict=True):
            injected.recovery = recovery
            self.result.faults.append(injected)
        for each in self.watch.idle:
            await self.replace(each, [injected.name for _, injected in real])
        self.tell("")

    async def replace(self, worker: Program, faults: list[str]) -> None:
        """A worker that does nothing though nothing is broken: say so, and start another."""
        said = ""
        if worker.process is not None and worker.alive:
            os.kill(worker.pid, signal.SIGUSR1)
            await asyncio.sleep(0.5)
            said = worker.process.said[-TOLD:]
        detail = f"{worker.name} after {', '.join(faults)}: {said}"
        self.scene.found.append(Violation("worker not back", "", detail))
        self.scene.empty(worker)
        worker.wanted = True

    async def inject(self, after: float, fault: Fault) -> Injected | None:
        """One fault from its begin to its end."""
        await asyncio.sleep(after)
        self.tell(fault.name)
        injected: Injected | None = Injected(fault.name, time.monotonic(), fault.seconds)
        self.scene.journal.write(Line(event="fault", name=fault.name))
        try:
            await asyncio.wait_for(fault.begin(), PATIENCE)
            await asyncio.sleep(fault.seconds)
        except Exception as error:  # another fault is in its way
            self.result.missed.append(f"{fault.name}: {type(error).__name__}: {error}")
            injected = None
        with contextlib.suppress(Exception):
            await asyncio.wait_for(fault.end(), PATIENCE)
        self.scene.journal.write(Line(event="healed", name=fault.name))
        return injected

    async def quiet(self) -> float | None:
        """Wait until nothing is left to do. None: it did not come to rest."""
        began = time.monotonic()
        while time.monotonic() < began + self.options.quiet_limit:
            self.tell("coming to rest")
            with contextlib.suppress(headrace.HeadraceError):
                # A fault may have left the driver with an App that nobody has opened since.
                await self.scene.app.open()
                queues = await self.scene.app.engine.queues()
                if not any(q.scheduled + q.waiting + q.ready + q.running for q in queues):
                    return time.monotonic() - began
            await asyncio.sleep(0.25)
        return None

    async def judge(self) -> None:
        """Compare the log with what the store says."""
        await self.scene.app.open()
        engine = self.scene.app.engine
        lines = journal.read(self.scene.path)
        ids = list(dict.fromkeys(line.job for line in lines if line.job))
        finals: list[Final] = []
        for start in range(0, len(ids), BATCH):
            found = await engine.get(ids[start : start + BATCH])
            finals += [Final.of(job) for job in found]
        audit = [f"{each}" for each in await engine.audit()]
        self.result.judgement = judge(lines, finals, audit=audit)
        if self.options.variant:
            acknowledged = {each.job: each.at for each in lines if each.event == "acknowledged"}
            # What may be lost may be lost until the fault has done its work.
            faults = [(each.at, each.name) for each in lines if each.event == "healed"]
            self.result.allowed = set_apart(self.result.judgement, acknowledged, faults)
        self.result.judgement.violations += self.scene.found
        broken = {each.job for each in self.result.judgement.violations[:SHOWN] if each.job}
        for line in lines:
            if line.job in broken:
                self.result.evidence.setdefault(line.job, []).append(line)
        limit = self.options.recovery_limit
        self.result.judgement.judge_recovery(
            [(each.name, each.recovery.first) for each in self.result.faults if each.recovery],
            limit,
        )

    def tell(self, doing: str) -> None:
        """Show where the run is."""
        self.watch.look()
        self.on_progress(self.result, doing)
