"""The stages of one attempt that run now, and the suspensions that wait for them.

A handler may run stages concurrently, also with a sleep or a wait, which suspends the handler: the
job runs again later. A suspension has to wait for the other stages: one that still ran would be run
a second time, at the same time, by the job's next run.

Invariants:
- No suspension leaves the handler while a stage runs, except stages that enclose a suspension: they
  end with it.
- No stage begins once a suspension has left, unless a stage has failed concurrently: the handler
  gets that error first, and may go on without what it waited for.

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

# The stages that the caller is in, the outermost first. Threads inherit it.
_ENCLOSING: ContextVar[tuple[int, ...]] = ContextVar("headrace_enclosing_stages", default=())
_numbers = itertools.count(1)
# So many turns of the event loop an error has to reach the handler, through nested gathers and task
# groups: two or three for each.
TURNS_FOR_ERRORS = 100


class RunningStages:
    """The stages of one attempt that run now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Task[object] | None]] = {}
        # Suspensions that wait, and the stages that enclose them.
        self._leaving: dict[asyncio.Future[None], tuple[int, ...]] = {}
        self._left: Suspended | None = None
        self._failures = 0
        self._ended: asyncio.Future[None] | None = None

    @property
    def any(self) -> bool:
        """Return whether a stage runs."""
        return bool(self._running)

    @contextmanager
    def stage(self) -> Iterator[None]:
        """Note that a stage runs. Raises `Suspended` if a suspension has left the handler."""
        number = next(_numbers)
        with self._lock:
            if self._left is not None:
                raise Suspended(self._left.delay, self._left.awaits)
            self._running[number] = asyncio.get_running_loop(), asyncio.current_task()
        before = _ENCLOSING.set((*_ENCLOSING.get(), number))
        try:
            yield
        except Suspended:
            raise
        except BaseException:
            with self._lock:
                self._failures += 1
            raise
        finally:
            with self._lock:
                del self._running[number]
                self._wake_ready()
            with suppress(ValueError):  # its loop has ended, and Python closes what was left
                _ENCLOSING.reset(before)

    async def leave(self, suspended: Suspended, stay: Callable[[], None]) -> bool:
        """Return when the suspension may leave the handler. Calls `stay` if it has to wait.

        Returns False if a stage has failed meanwhile: the handler gets that error as well, so it
        may return although it was suspended.
        """
        if self._leave(suspended, final=True):
            return True
        stay()
        began, failures, failed = time.monotonic(), self._failures, False
        while True:
            await self._others()
            failed = failed or self._failures > failures
            for _ in range(TURNS_FOR_ERRORS if failed else 1):
                await asyncio.sleep(0)
            if self._leave(suspended, final=not failed):  # otherwise another stage has begun
                break
        suspended.delay = max(suspended.delay - (time.monotonic() - began), 0.0)
        return not failed

    async def end(self, *, wait: bool) -> None:
        """The handler has ended: wait for its stages, or cancel them if not `wait`.

        The caller has a time limit of its own, so this goes on until they are over.
        """
        while self._running:
            if not wait:
                self._cancel()
            with self._lock:
                self._ended = asyncio.get_running_loop().create_future()
                self._wake_ready()
            try:
                await self._ended
            except asyncio.CancelledError:
                wait = False

    def _leave(self, suspended: Suspended, *, final: bool) -> bool:
        with self._lock:
            if self._left is None:
                held = set(_ENCLOSING.get()).union(*self._leaving.values())
                if not self._running.keys() <= held:
                    return False
                if final:
                    self._left = suspended
                    self._wake_ready()
            return True

    async def _others(self) -> None:
        """Wait until only stages run that enclose a suspension."""
        leaving = asyncio.get_running_loop().create_future()
        with self._lock:
            self._leaving[leaving] = _ENCLOSING.get()
            self._wake_ready()
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

    def _wake_ready(self) -> None:
        """Under the lock: wake what need not wait any longer."""
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
