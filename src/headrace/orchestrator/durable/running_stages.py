"""The stages of one attempt that run now, and those who would leave its handler.

A handler may run stages beside each other, and beside a sleep or a wait, which leaves the handler
and has the job run again later. Whoever leaves first has to wait for the others: a stage that still
runs would be run a second time, at once with itself, by the job's next run.

Invariants:
- Nobody leaves while a stage runs, except stages that hold somebody who leaves as well: they end
  with whoever is in them.
- No stage begins once somebody has left.

Stages may run on several event loops, in threads of their own: all is decided under a lock.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from headrace.errors import Suspended

# The stages that the caller is in, the outermost first. It follows calls into threads.
_ENCLOSING: ContextVar[tuple[int, ...]] = ContextVar("headrace_enclosing_stages", default=())
_numbers = itertools.count(1)


class RunningStages:
    """The stages under way in one attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Task[object] | None]] = {}
        # Who would leave the handler, and the stages that hold them.
        self._leaving: dict[asyncio.Future[None], tuple[int, ...]] = {}
        self._left: Suspended | None = None
        self._ended: asyncio.Future[None] | None = None

    @property
    def any(self) -> bool:
        """Whether a stage runs."""
        return bool(self._running)

    @contextmanager
    def stage(self) -> Iterator[None]:
        """A stage runs. Raises `Suspended` if the handler has been left."""
        number = next(_numbers)
        with self._lock:
            if self._left is not None:
                raise Suspended(self._left.delay, self._left.awaits)
            self._running[number] = asyncio.get_running_loop(), asyncio.current_task()
        before = _ENCLOSING.set((*_ENCLOSING.get(), number))
        try:
            yield
        finally:
            with self._lock:
                del self._running[number]
                self._look()
            with suppress(ValueError):  # its loop has ended, and Python closes what was left
                _ENCLOSING.reset(before)

    async def leave(self, suspended: Suspended, stay: Callable[[], None]) -> None:
        """Return when the handler may be left. Calls `stay` if that is not now."""
        began = time.monotonic()
        if self._leave(suspended):
            return
        stay()
        while not self._leave(suspended):  # another stage may have begun since we were woken
            await self._others()
            # If the last of them failed, let the handler hear of that first: it may go on without.
            await asyncio.sleep(0)
        suspended.delay = max(suspended.delay - (time.monotonic() - began), 0.0)

    async def end(self, *, wait: bool) -> None:
        """The handler has ended: wait for its stages. When it is told to stop, so are they.

        Whoever stops it has patience of their own, so this goes on until they are over.
        """
        while self._running:
            if not wait:
                self._cancel()
            with self._lock:
                self._ended = asyncio.get_running_loop().create_future()
                self._look()
            try:
                await self._ended
            except asyncio.CancelledError:
                wait = False

    def _leave(self, suspended: Suspended) -> bool:
        with self._lock:
            if self._left is None:
                held = set(_ENCLOSING.get()).union(*self._leaving.values())
                if not self._running.keys() <= held:
                    return False
                self._left = suspended
                self._look()
            return True

    async def _others(self) -> None:
        """Wait until no stage runs but those that hold whoever would leave."""
        leaving = asyncio.get_running_loop().create_future()
        with self._lock:
            self._leaving[leaving] = _ENCLOSING.get()
            self._look()
        try:
            await leaving
        finally:
            with self._lock:
                del self._leaving[leaving]

    def _cancel(self) -> None:
        with self._lock:
            running = list(self._running.values())
        for loop, task in running:
            if task is not None:
                _call(loop, task.cancel)

    def _look(self) -> None:
        """Under the lock: wake those who need not wait any longer."""
        if self._ended is not None and not self._running:
            _wake(self._ended)
        if self._leaving:
            held = set().union(*self._leaving.values())
            if self._left is not None or self._running.keys() <= held:
                for leaving in self._leaving:
                    _wake(leaving)


def _wake(waiting: asyncio.Future[None]) -> None:
    _call(waiting.get_loop(), lambda: None if waiting.done() else waiting.set_result(None))


def _call(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # that loop has ended, and all that ran on it
        loop.call_soon_threadsafe(call)
