"""Calls that block, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(call: Callable[[], T]) -> T:
    """Make a call on a connection of the caller in a thread, and come back when it has ended.

    When this returns or raises, nobody uses the connection any more: who is cancelled meanwhile is
    cancelled then. The thread is its own, not one of a pool: as many calls may wait for a key as
    there are connections, and the one that all of them wait for must not wait for a free thread.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result = context.run(call)
        except BaseException as error:
            _tell(loop, _fail, ended, error)
        else:
            _tell(loop, _succeed, ended, result)

    threading.Thread(target=run, name="headrace-within", daemon=True).start()
    cancelled: asyncio.CancelledError | None = None
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        ended.exception()
        raise cancelled
    return ended.result()


def _tell(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *arguments: object) -> None:
    # If the loop has been closed, nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(how, *arguments)


def _succeed(ended: asyncio.Future[T], result: T) -> None:
    if not ended.done():
        ended.set_result(result)


def _fail(ended: asyncio.Future[T], error: BaseException) -> None:
    if not ended.done():
        ended.set_exception(error)
