"""An event loop in a thread of its own, and blocking classes made of classes with coroutines."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from typing import Any, TypeVar

from headrace.errors import EngineUnavailable, HeadraceError

T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)

LONGEST_END = 5.0
# How often a caller checks whether the loop that it waits on still runs, if it is not our own.
CHECK_SECONDS = 0.5
MOST_ROUNDS = 10
LOOP_ENDED = "the event loop that uses this App has ended; what was asked may have been done or not"


class LoopThread:
    """Runs coroutines for any number of threads. Starts by itself, also after a fork.

    A coroutine is handed to the loop under a lock, and the loop is taken away under the same lock:
    so each coroutine is either cancelled with its loop, or handed to the next one. A fork copies
    the lock in whatever state it is, but no thread: so every process has its own `_ProcessLoop`.
    """

    def __init__(
        self, name: str, *, last: Callable[[], Coroutine[Any, Any, None]], would_block: str
    ) -> None:
        self._name = name
        self._last = last
        self._would_block = would_block
        self._by_process: dict[int, _ProcessLoop] = {}

    @property
    def started(self) -> bool:
        """Whether it runs in this process."""
        return self._loop is not None

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        return self._current().loop

    def serves(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return whether this is the loop of this thread."""
        return self._loop is loop

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. If the caller is interrupted, it is cancelled."""
        refuse_to_block(verb, self._would_block)
        current = self._current()
        with current.lock:
            loop = current.loop or self._start(current)
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
        # Some parts of Python have ended already, such as pools of threads, and there is no caller
        # to report an error to. What was acknowledged is stored all the same.
        with contextlib.suppress(Exception):
            self._stop(LONGEST_END)

    def _stop(self, timeout: float | None) -> None:
        atexit.unregister(self._stop_at_exit)
        current = self._current()
        with current.lock:
            loop, thread = current.loop, current.thread
            if loop is None or thread is None:
                return
            current.loop = current.thread = None
            # The next loop starts only after this one has closed its connections.
            current.ending = thread
            ended = asyncio.run_coroutine_threadsafe(_end(self._last), loop)
        try:
            ended.result(timeout)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_END)

    def _current(self) -> _ProcessLoop:
        # In one step: several threads of a process may be the first at once.
        return self._by_process.setdefault(os.getpid(), _ProcessLoop())

    def _start(self, current: _ProcessLoop) -> asyncio.AbstractEventLoop:
        if current.ending is not None:
            current.ending.join(LONGEST_END)
            current.ending = None
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
        thread.start()
        current.loop, current.thread = loop, thread
        atexit.register(self._stop_at_exit)
        return loop


class _ProcessLoop:
    """The loop and the thread of one process."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may interrupt its holder, and close.
        self.lock = threading.RLock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.ending: threading.Thread | None = None


def refuse_to_block(verb: Coroutine[Any, Any, T], message: str) -> None:
    """Raise if the caller has an event loop: waiting here would stop it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    verb.close()
    raise HeadraceError(message)


def run_on(loop: asyncio.AbstractEventLoop, verb: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine on a loop that is not our own, and may end at any time."""
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
    return bool(wait([future], CHECK_SECONDS).done)


async def _end(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await last()
    finally:
        await _cancel_others()
    # One that was under way may have connected again before it was cancelled.
    await last()


async def _cancel_others() -> None:
    # What is cancelled may start other tasks while it ends, and these again: there is a limit.
    for _ in range(MOST_ROUNDS):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            return
        begun = {task for task in left if _has_begun(task)}
        for task in begun:
            task.cancel()
        # One that has not begun yet gets its first step: it may have been handed a coroutine,
        # which nobody would await if it were cancelled now. anyio's tasks are such.
        await asyncio.gather(asyncio.sleep(0), *begun, return_exceptions=True)


def _has_begun(task: asyncio.Task[Any]) -> bool:
    coroutine = task.get_coro()
    if not inspect.iscoroutine(coroutine):
        return True
    return inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_others())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


# -- blocking classes --------------------------------------------------------------------------


def blocking(source: type, attribute: str, *, also: Sequence[str] = ()) -> Callable[[Kind], Kind]:
    """Give a class a blocking method for each public coroutine method of `source`.

    An instance has the wrapped object as `attribute`, the thread as `_thread`, and waits by
    `_run(coroutine)`. `also` names methods that are passed on as they are. What the class defines
    itself is left alone. The stubs beside its module are made of the same methods.
    """

    def decorate(kind: Kind) -> Kind:
        for name, verb in inspect.getmembers(source, inspect.isfunction):
            if name in vars(kind) or name.startswith("_"):
                continue
            if inspect.iscoroutinefunction(verb):
                setattr(kind, name, _waiting(attribute, name, verb))
            elif inspect.isasyncgenfunction(verb):
                setattr(kind, name, _iterating(attribute, name, verb))
            elif name in also:
                setattr(kind, name, _passing(attribute, name, verb))
        return kind

    return decorate


def _waiting(attribute: str, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def wait_for(self: Any, *args: Any, **options: Any) -> Any:
        return self._run(getattr(getattr(self, attribute), name)(*args, **options))

    return wait_for


def _iterating(attribute: str, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def iterate(self: Any, *args: Any, **options: Any) -> Iterator[Any]:
        stream = getattr(getattr(self, attribute), name)(*args, **options)
        end = object()
        try:
            while (item := self._run(_next(stream, end))) is not end:
                yield item
        finally:
            # After a close it has ended with its loop: do not start another for that.
            if self._thread.started:
                self._run(stream.aclose())

    return iterate


def _passing(attribute: str, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def pass_on(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(getattr(self, attribute), name)(*args, **options)

    return pass_on


async def _next(stream: AsyncGenerator[Any, None], end: object) -> Any:
    return await anext(stream, end)
