"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from typing import Any, TypeVar

from headrace.errors import EngineUnavailable, HeadraceError

T = TypeVar("T")

LONGEST_END = 5.0
# How often somebody who waits on another's loop looks whether it still runs.
LOOK_SECONDS = 0.5
LOOP_ENDED = "the event loop that uses this App has ended; what was asked may have been done or not"


class LoopThread:
    """Runs coroutines for any number of threads. Starts by itself, also after a fork.

    What holds at every moment: a coroutine is handed to the loop under a lock, and the loop is
    taken away under the same lock. So each is on the loop when that is told to end, and is ended
    with it, or it waits for the next loop: nobody waits for one that has ended. A fork copies the
    lock in whatever state it is, and no thread: so every process has a `_Serving` of its own, and
    never touches that of its parent.
    """

    def __init__(
        self, name: str, *, last: Callable[[], Coroutine[Any, Any, None]], would_block: str
    ) -> None:
        self._name = name
        self._last = last
        self._would_block = would_block
        self._by_process: dict[int, _Serving] = {}

    @property
    def started(self) -> bool:
        """Whether it runs in this process."""
        return self._loop is not None

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        return self._serving().loop

    def serves(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this is the loop of this thread."""
        return self._loop is loop

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. If the caller is interrupted, it is cancelled."""
        refuse_to_block(verb, self._would_block)
        serving = self._serving()
        with serving.lock:
            loop = serving.loop or self._start(serving)
            future = asyncio.run_coroutine_threadsafe(verb, loop)
        try:
            return future.result()
        except CancelledError:
            raise EngineUnavailable(
                f"{self._name} was closed while this was under way; it may have been done or not"
            ) from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Run `last`, cancel what is under way and end the thread. The next coroutine starts
        another.
        """
        self._stop(None)

    def _stop_at_exit(self) -> None:
        # Nobody is left to be told, or to wait for long. Some parts of Python have ended already,
        # such as pools of threads; what was answered is stored all the same.
        with contextlib.suppress(Exception):
            self._stop(LONGEST_END)

    def _stop(self, patience: float | None) -> None:
        atexit.unregister(self._stop_at_exit)
        serving = self._serving()
        with serving.lock:
            loop, thread = serving.loop, serving.thread
            if loop is None or thread is None:
                return
            serving.loop = serving.thread = None
            # Nobody begins anew before this one has let go of what it holds.
            serving.ending = thread
            farewell = asyncio.run_coroutine_threadsafe(_end(self._last), loop)
        try:
            farewell.result(patience)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_END)

    def _serving(self) -> _Serving:
        # In one step: several threads of a process may be the first at once.
        return self._by_process.setdefault(os.getpid(), _Serving())

    def _start(self, serving: _Serving) -> asyncio.AbstractEventLoop:
        if serving.ending is not None:
            serving.ending.join(LONGEST_END)
            serving.ending = None
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
        thread.start()
        serving.loop, serving.thread = loop, thread
        atexit.register(self._stop_at_exit)
        return loop


class _Serving:
    """The loop and the thread of one process."""

    def __init__(self) -> None:
        # Held again by a signal handler that interrupts its holder, and closes.
        self.lock = threading.RLock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.ending: threading.Thread | None = None


def refuse_to_block(verb: Coroutine[Any, Any, T], told: str) -> None:
    """Whoever has an event loop would stop it by waiting here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    verb.close()
    raise HeadraceError(told)


def run_on(loop: asyncio.AbstractEventLoop, verb: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine on a loop that belongs to somebody else, and may end at any time."""
    try:
        future = asyncio.run_coroutine_threadsafe(verb, loop)
    except RuntimeError:
        verb.close()
        raise EngineUnavailable(LOOP_ENDED) from None
    try:
        while not _is_done(future) and not loop.is_closed():
            pass
        return future.result(0)
    except (CancelledError, TimeoutError):
        if future.done() and not future.cancelled():
            raise  # its own
        raise EngineUnavailable(LOOP_ENDED) from None
    finally:
        future.cancel()


def _is_done(future: Future[T]) -> bool:
    """Whether it is done within a while."""
    return bool(wait([future], LOOK_SECONDS).done)


async def _end(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await last()
    finally:
        await _cancel_others()
    # One that was under way may have begun anew before it was cancelled.
    await last()


async def _cancel_others() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_others())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
