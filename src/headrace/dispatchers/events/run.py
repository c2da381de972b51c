"""An event dispatcher as a program: runs until it is told to stop."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal

from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.loops.free_memory import memory_given_back
from headrace.loops.signals import check_failures, exit_code, on_stop_signals, wait_checking

log = logging.getLogger("headrace.events")


async def run_dispatcher(dispatcher: QueueDispatcher) -> int:
    """Run until SIGTERM or SIGINT, then stop in good order. Return the exit code.

    A second signal cuts the stop short and shows in the exit code; what is in hand then comes
    again, and makes no second job. Raises `WorkerUnhealthy` where `connection_retries` says so.
    """
    stop = asyncio.Event()
    hurry = asyncio.Event()

    def store_what_is_here(number: signal.Signals) -> None:
        log.info("%s: storing what is here", number.name)
        stop.set()

    with (
        on_stop_signals(store_what_is_here, lambda _: hurry.set()) as received,
        memory_given_back(),
    ):
        await dispatcher.start()
        try:
            await wait_checking(stop, functools.partial(_check, dispatcher))
        finally:
            await _stop(dispatcher, hurry)
    return exit_code(received)


def _check(dispatcher: QueueDispatcher) -> None:
    """Raise if broker or engine failed more often than is allowed."""
    retries = dispatcher.host.settings.connection_retries
    for each in (dispatcher.receiver, *dispatcher.writers):
        check_failures(each.failures, each.last_error, retries=retries, what=f"{each.name} failed")


async def _stop(dispatcher: QueueDispatcher, hurry: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(dispatcher.stop())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({stopping, hurried}, return_when="FIRST_COMPLETED")
    hurried.cancel()
    if not stopping.done():
        stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
