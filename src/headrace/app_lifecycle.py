"""Opening and closing an App: its engine, on one event loop of one process at a time.

What holds at every moment, whatever is awaited meanwhile:

* `_engine`, `_enqueuer` and `_results` belong together. Whoever takes them away puts new ones in
  their place in the same step, before the first `await`, and closes the old ones afterwards. So
  two that close at once never close what somebody has opened since.
* An engine is opened once, by a task that belongs to nobody's call, and it is closed only after
  that task has ended. `_opened` is said of the engine that is there now, by looking again after the
  wait.
* What a process has inherited by a fork is never used and never closed: its connections and
  threads are the parent's. It is kept, so that nothing closes it by collecting it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from headrace.artifacts import open_store
from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.open import in_memory, open_engine
from headrace.enqueue import Enqueuer, TracedEnqueuer
from headrace.errors import EngineUnavailable, HeadraceError
from headrace.job_tree import cancel_children, wake_parents
from headrace.monitor.results import ResultWatch
from headrace.task import Registry
from headrace.tracing import find_tracing

if TYPE_CHECKING:
    from headrace.encryption import KeySource, Sealing
    from headrace.engine.base import Engine
    from headrace.tracing.tracer import Tracing

CLOSED = "the App was closed while it was being opened; open it again"
ELSEWHERE = (
    "this App is in use on another event loop; make one App for each loop, or use headrace.sync"
)
IN_PARENT = (
    "this App keeps its jobs in the memory of the process that this one was forked from; "
    "use a file, sqlite:///path.db"
)
IN_WORKER = (
    "this App keeps its jobs in the memory of its worker, where a handler in a child process "
    "cannot reach them; make jobs by ctx.spawn, or use a file, sqlite:///path.db"
)
# An engine that is being opened is given so long before that is cut short.
LONGEST_OPENING = 5.0
# Connections of a loop that has ended are let go after so long.
LONGEST_FAREWELL = 1.0

_inherited: list[object] = []


class AppLifecycle(Registry):
    """Tasks, and an engine that is opened when it is needed."""

    settings: Settings
    clock: Clock
    # What makes spans; None while traces are off. Known when the App is opened.
    tracing: Tracing | None = None
    _isolated = False
    # Keys that are given in code, and what seals with them, or with those of the settings.
    _encryption: KeySource | None = None
    _sealing: Sealing | None = None

    def isolated(self) -> None:
        """From now on this is the App of a child process, which works for a worker elsewhere."""
        self._isolated = True

    def reconfigure(self, settings: Settings, *, clock: Clock | None = None) -> None:
        """Use other settings from now on, with a new engine. Close the App first if it is open."""
        self.settings = settings
        if clock is not None:
            self.clock = clock
        self.artifact_store = open_store(settings.artifacts)
        self._sealing = self._make_sealing()
        for task in self.tasks.values():
            task.decide_encryption()
        self._begin_afresh()

    @property
    def sealing(self) -> Sealing | None:
        """What seals and opens the values of encrypted tasks; None without keys."""
        return self._sealing

    @property
    def encrypt_all(self) -> bool:
        """Whether tasks are encrypted that do not say whether they are."""
        return self.settings.encrypt_all

    def _make_sealing(self) -> Sealing | None:
        given, settings = self._encryption, self.settings
        text, file = settings.encryption_keys, settings.encryption_key_file
        if given is None and text is None and file is None:
            return None
        # Most programs encrypt nothing, and do not pay for this.
        from headrace.encryption import Sealing, make_keys  # noqa: PLC0415

        return Sealing(functools.partial(make_keys, given, text, file))

    def _begin_afresh(self) -> None:
        settings = self.settings
        stores = settings.stores
        make = functools.partial(open_engine, stores=stores) if stores else open_engine
        self._use(make(settings.url, clock=self.clock, migrate=settings.migrate))

    def _use(self, engine: Engine, *, opened: bool = False) -> None:
        self._engine = engine
        self._enqueuer = self._make_enqueuer()
        self._results = ResultWatch(self._engine)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._opening: asyncio.Task[None] | None = None
        self._openers = 0
        self._opened = opened

    @property
    def engine(self) -> Engine:
        """Where this App's jobs live."""
        return self._engine

    @property
    def home(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of this process that the App is in use on, if it runs."""
        loop = self._loop
        if loop is None or self._process != os.getpid() or not loop.is_running():
            return None
        return loop

    @abstractmethod
    async def open(self) -> None:
        """Connect and bring the schema up to date. Every verb does this by itself."""

    async def _open(self) -> None:
        if self._isolated and in_memory(self.settings.url):
            raise HeadraceError(IN_WORKER)
        engine, opening = self._engine, self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening = asyncio.ensure_future(engine.open())
        self._openers += 1
        try:
            # One that is cancelled here must not take along the others who wait for the same.
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not opening.cancelled() or (task is not None and task.cancelling()):
                raise
            raise EngineUnavailable(CLOSED) from None
        finally:
            if self._engine is engine:
                self._openers -= 1
        if self._engine is not engine:
            raise EngineUnavailable(CLOSED)
        self._trace()
        self._opened = True

    def _trace(self) -> None:
        """Make spans from now on, if traces are on."""
        self.tracing = find_tracing(self.settings.tracing)
        # Others may wait for the same engine to be opened: the first to be here decides.
        if isinstance(self._enqueuer, TracedEnqueuer) != (self.tracing is not None):
            self._enqueuer = self._make_enqueuer()

    def _make_enqueuer(self) -> Enqueuer:
        if self.tracing is None:
            return Enqueuer(self._engine, clock=self.clock, on_replaced=self._tell_relatives)
        return TracedEnqueuer(
            self._engine, clock=self.clock, on_replaced=self._tell_relatives, tracing=self.tracing
        )

    async def _tell_relatives(self, ids: Sequence[str]) -> None:
        """Jobs were cancelled, or asked to stop, for a new one: so are their children, and nobody
        waits for them.
        """
        await cancel_children(self._engine, ids)
        await wake_parents(self._engine, ids)

    async def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Connections belong to one event loop of one process; start afresh on another."""
        old, old_loop = self._engine, self._loop
        if self._process != os.getpid():
            if old_loop is not None and in_memory(self.settings.url):
                raise HeadraceError(IN_PARENT)
            self._forget_inherited()
            old_loop = None
        elif old_loop is not None:
            if not old_loop.is_closed():
                raise HeadraceError(ELSEWHERE)
            if in_memory(self.settings.url):
                # All the jobs are in there, and it is in a thread: any loop may ask it.
                self._use(old, opened=self._opened)
                old_loop = None
            else:
                self._begin_afresh()
        self._loop = loop
        if old_loop is not None:
            await _let_go(old)

    def _forget_inherited(self) -> None:
        _inherited.append((self._engine, self._enqueuer, self._results, self._opening, self._loop))
        self._begin_afresh()

    async def close(self) -> None:
        """Close every connection. The App can be opened again. Those who wait for a result, or for
        the App to be opened, are told so by an error.
        """
        if self._process != os.getpid():
            self._forget_inherited()
            return
        engine, results, opening, loop = self._engine, self._results, self._opening, self._loop
        openers = self._openers
        if loop is None:
            return
        if loop.is_running() and loop is not asyncio.get_running_loop():
            raise HeadraceError(ELSEWHERE)
        self._begin_afresh()
        if loop is not asyncio.get_running_loop():
            await _let_go(engine)
            return
        await results.close()
        if opening is not None:
            await _ended(opening, LONGEST_OPENING if openers else 0)
        await engine.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _ended(opening: asyncio.Task[None], patience: float) -> None:
    """Wait until an engine is opened, or has given up; not for ever."""
    await asyncio.wait([opening], timeout=patience)
    if not opening.done():
        opening.cancel()
        await asyncio.wait([opening])
    if not opening.cancelled():
        opening.exception()  # those who waited were told


async def _let_go(engine: Engine) -> None:
    """Close what belongs to a loop that has ended, as well as can be."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(engine.close(), LONGEST_FAREWELL)
