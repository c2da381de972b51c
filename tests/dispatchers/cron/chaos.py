"""Dispatchers that die: at any step of their work, before or after the engine has done it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import headrace
from headrace.clock import Clock
from headrace.config import Settings
from headrace.dispatchers.cron.config import CronSettings
from headrace.dispatchers.cron.dispatcher import CronDispatcher, ScheduledApp
from headrace.dispatchers.cron.schedules import Schedules
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.task import Task
from headrace.task.app_like import AppLike

VERBS = ("record_get", "record_put", "record_list", "insert", "get", "list_jobs")

Decide = Callable[[str, str], BaseException | None]


class Killed(BaseException):
    """The process is gone."""


class FailingEngine:
    """An engine whose verbs may raise before or after they were done.

    Whoever is cancelled while one is under way does not see its end. It is done all the same, as a
    server does what a client has sent that is gone.
    """

    def __init__(self, engine: Engine, decide: Decide) -> None:
        self._engine = engine
        self._decide = decide
        self._under_way: set[asyncio.Future[Any]] = set()

    async def done(self) -> None:
        """Wait for what is under way, whoever has asked for it."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)
        if name not in VERBS:
            return verb

        async def failing(*args: Any, **options: Any) -> Any:
            if error := self._decide(name, "before"):
                raise error
            work = asyncio.ensure_future(verb(*args, **options))
            self._under_way.add(work)
            work.add_done_callback(self._under_way.discard)
            answer = await asyncio.shield(work)
            if error := self._decide(name, "after"):
                raise error
            return answer

        return failing


class FailingHost:
    """An App as a dispatcher knows it, on an engine that fails."""

    def __init__(self, app: headrace.App, decide: Decide, engine: Engine | None = None) -> None:
        self.app = app
        self.settings: Settings = app.settings
        self.clock: Clock = app.clock
        self.tasks: dict[str, Task[..., Any]] = app.tasks
        self.tracing = app.tracing
        self.engine = cast(Engine, FailingEngine(engine or app.engine, decide))
        self.schedules = Schedules(cast(AppLike, self))

    async def open(self) -> None:
        """It is open."""

    def find_task(self, name: str) -> Task[..., Any]:
        return self.app.find_task(name)


def failing(
    app: headrace.App, decide: Decide, engine: Engine | None = None, **settings: Any
) -> CronDispatcher:
    """A dispatcher on an engine that fails."""
    host = cast(ScheduledApp, FailingHost(app, decide, engine))
    return CronDispatcher(host, settings=CronSettings(**settings))


class At:
    """Dies at the n-th chance; `reached` tells whether there were so many."""

    def __init__(self, number: int, error: BaseException) -> None:
        self._left = number
        self._error = error
        self.where = ""

    def __call__(self, verb: str, when: str) -> BaseException | None:
        self._left -= 1
        if self._left:
            return None
        self.where = f"{when} {verb}"
        return self._error


class AtVerb:
    """Dies whenever it calls a verb, before it is done or after."""

    def __init__(self, verb: str, when: str, error: BaseException) -> None:
        self._place = (verb, when)
        self._error = error

    def __call__(self, verb: str, when: str) -> BaseException | None:
        return self._error if (verb, when) == self._place else None


class AtRandom:
    """Dies, or loses its connection, now and then."""

    def __init__(self, dice: random.Random, chance: float) -> None:
        self._dice = dice
        self._chance = chance

    def __call__(self, verb: str, when: str) -> BaseException | None:
        if self._dice.random() >= self._chance:
            return None
        return self._dice.choice([Killed(), EngineUnavailable("the network is away")])


async def until_death(dispatcher: CronDispatcher, dice: random.Random, patience: float) -> bool:
    """Rounds until there is nothing to do, or until it dies. Answers whether it lives."""
    work = asyncio.ensure_future(_rounds(dispatcher))
    if dice.random() < patience:
        for _ in range(dice.randrange(1, 60)):
            await asyncio.sleep(0)
        work.cancel()
    try:
        await work
    except (Killed, asyncio.CancelledError):
        return False
    except EngineUnavailable:
        return True
    finally:
        await cast(FailingEngine, dispatcher.app.engine).done()
    return True


async def _rounds(dispatcher: CronDispatcher) -> None:
    while await dispatcher.tick() < 0.01:
        pass
