"""Jobs whose handlers misbehave: they block, hang, fork, raise what nobody expects, or kill."""

from __future__ import annotations

import itertools
import random
from typing import Any

from chaos.bad_tasks import RAISED
from chaos.faults.base import Fault
from chaos.journal import Line

_numbers = itertools.count(1)


class BadHandler(Fault):
    """Enqueues some jobs, past every proxy. The workers go on with the others meanwhile."""

    weight = 0.7
    # Tasks, of which chance chooses.
    tasks: tuple[str, ...] = ()

    def draw(self, chance: random.Random) -> None:
        self.jobs = [(chance.choice(self.tasks), self.args(chance)) for _ in range(self.count())]
        self.seconds = chance.uniform(0.3, 1.5)

    def count(self) -> int:
        """How many jobs."""
        return 1

    def args(self, chance: random.Random) -> dict[str, Any]:
        """The arguments of one job."""
        return {"seconds": round(chance.uniform(0.5, 4.0), 2)}

    async def begin(self) -> None:
        app = self.scene.app
        for task, args in self.jobs:
            number = -next(_numbers)  # producers count upwards
            job = await app.enqueue(task, {"number": number, **args})
            self.scene.journal.write(
                Line(event="acknowledged", job=job.id, task=task, number=number)
            )


class Raises(BadHandler):
    """SystemExit, KeyboardInterrupt, GeneratorExit, CancelledError and their like."""

    name = "handler raises"
    weight = 1.5
    tasks = ("raises", "raises", "raises_in_thread")

    def count(self) -> int:
        return self.chance.randint(1, 4)

    def args(self, chance: random.Random) -> dict[str, Any]:
        return {"what": chance.choice(list(RAISED))}


class Blocks(BadHandler):
    """An `async def` that computes, also for longer than the lease."""

    name = "handler blocks the loop"
    tasks = ("blocks",)


class Hangs(BadHandler):
    """Handlers that do not stop when their time is over."""

    name = "handler hangs"
    tasks = ("hangs", "hangs_in_thread", "hangs_isolated")

    def count(self) -> int:
        return self.chance.randint(1, 3)


class Forks(BadHandler):
    """Forks whose `exec` fails, programs and threads that are left behind."""

    name = "handler forks"
    tasks = ("forks", "forks", "starts_programs", "leaves_thread")

    def count(self) -> int:
        return self.chance.randint(1, 3)


class RunsProgram(BadHandler):
    """Long programs in isolated handlers: they end with their worker, however it ends."""

    name = "handler runs a program"
    tasks = ("runs_program",)

    def count(self) -> int:
        return self.chance.randint(1, 2)

    def args(self, chance: random.Random) -> dict[str, Any]:
        return {"seconds": 20.0}


class Poison(BadHandler):
    """Jobs that kill their workers, or the child process that they run in."""

    name = "poison job"
    tasks = ("poison", "poison_isolated")

    def args(self, chance: random.Random) -> dict[str, Any]:
        return {}


class Descriptors(BadHandler):
    """A handler that has all file descriptors of its worker for a while."""

    name = "descriptors used up"
    tasks = ("descriptors",)


class BigResult(BadHandler):
    """A result that is larger than the limit."""

    name = "result too large"
    weight = 0.3
    tasks = ("big",)

    def args(self, chance: random.Random) -> dict[str, Any]:
        return {}


FAULTS = (
    Raises,
    Blocks,
    Hangs,
    Forks,
    RunsProgram,
    Poison,
    Descriptors,
    BigResult,
)
