"""Processes of workers and producers that die or stand still."""

from __future__ import annotations

import asyncio
import random

from chaos.faults.base import Fault
from chaos.judge import Violation
from chaos.scene import LOOK_SECONDS


class KillWorker(Fault):
    """SIGKILL, and a new process later: under the same name, which takes the old one's place at
    once, or under a new one, which has to wait for the lease.
    """

    name = "kill worker"
    weight = 3

    def draw(self, chance: random.Random) -> None:
        self.victims = self.some(self.scene.workers)
        self.seconds = chance.uniform(0.0, 1.0)
        self.new_name = chance.random() < 0.5

    async def begin(self) -> None:
        for each in self.victims:
            self.scene.empty(each)

    async def end(self) -> None:
        for each in self.victims:
            if not each.alive:
                self.scene.fill(each, new_name=self.new_name)
            each.wanted = True


class KillStorm(Fault):
    """Every worker is killed again and again, shortly after it has started."""

    name = "kill storm"
    weight = 0.5

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.pauses = [chance.uniform(0.3, 1.2) for _ in range(chance.randint(2, 3))]

    async def begin(self) -> None:
        for pause in self.pauses:
            for each in self.victims:
                self.scene.empty(each)
                self.scene.fill(each)
                each.wanted = True
            await asyncio.sleep(pause)


class FreezeWorker(Fault):
    """SIGSTOP, and SIGCONT when the lease has lapsed and others have taken over."""

    name = "freeze worker"
    weight = 2

    def draw(self, chance: random.Random) -> None:
        self.victims = self.some(self.scene.workers)
        self.seconds = self.longer_than_lease()

    async def begin(self) -> None:
        for each in self.victims:
            each.freeze()

    async def end(self) -> None:
        for each in self.victims:
            each.thaw()


class ShortFreeze(FreezeWorker):
    """SIGSTOP for less than the lease: nothing may be lost to the worker."""

    name = "short freeze"

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.seconds = self.scene.options.lease * chance.uniform(0.1, 0.5)


class StopWorker(Fault):
    """SIGTERM under load: what is unstarted is given back, and a new process follows."""

    name = "stop worker"

    def draw(self, chance: random.Random) -> None:
        self.victims = [chance.choice(self.scene.workers)]
        self.seconds = chance.uniform(0.5, 1.5)

    async def begin(self) -> None:
        [victim] = self.victims
        self.process = victim.process
        if self.process is not None and victim.alive:
            self.process.terminate()

    async def end(self) -> None:
        [victim] = self.victims
        patience = limit = self.scene.options.stop_limit
        while self.process is not None and self.process.code is None:
            if patience <= 0:
                detail = f"{victim.name} did not end {limit:g} s after SIGTERM"
                self.scene.found.append(Violation("not stopped", "", detail))
                self.process.kill()
                return
            if not victim.frozen:
                patience -= LOOK_SECONDS
            await asyncio.sleep(LOOK_SECONDS)


class KillProducer(Fault):
    """SIGKILL in the middle of requests: what was not acknowledged may or may not exist."""

    name = "kill producer"

    def draw(self, chance: random.Random) -> None:
        self.producer = chance.choice(self.scene.producers)

    async def begin(self) -> None:
        self.scene.empty(self.producer)
        self.producer.wanted = True


class FreezeProducer(Fault):
    """SIGSTOP of a producer in the middle of requests."""

    name = "freeze producer"

    def draw(self, chance: random.Random) -> None:
        self.producer = chance.choice(self.scene.producers)
        self.seconds = chance.uniform(0.5, 3.0)

    async def begin(self) -> None:
        self.producer.freeze()

    async def end(self) -> None:
        self.producer.thaw()


FAULTS = (
    KillWorker,
    KillStorm,
    FreezeWorker,
    ShortFreeze,
    StopWorker,
    KillProducer,
    FreezeProducer,
)
