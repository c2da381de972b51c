"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from headrace.errors import HeadraceError

T = TypeVar("T")

LONGEST_END = 5.0


class LoopThread:
    """Runs coroutines for any number of threads. Starts by itself, also after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Whether it runs in this process."""
        return self._loop is not None and self._process == os.getpid()

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. If the caller is interrupted, it is cancelled."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            verb.close()
            raise HeadraceError(
                "this would block the event loop; use headrace.Client and `await` here"
            )
        future = asyncio.run_coroutine_threadsafe(verb, self._serving())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread. The next coroutine starts another."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        atexit.unregister(self.stop)
        if loop is not None and thread is not None and self._process == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_END)

    def _serving(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork copies this object but not its thread: the child starts its own.
            if self._loop is None or self._process != os.getpid():
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(loop,), name=self._name, daemon=True
                )
                self._thread.start()
                self._loop, self._process = loop, os.getpid()
                atexit.register(self.stop)
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        for task in (left := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
