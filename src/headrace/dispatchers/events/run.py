"""An event dispatcher as a program: runs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal

from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.errors import WorkerUnhealthy

log = logging.getLogger("headrace.events")

LOOK = 0.5


async def run_dispatcher(dispatcher: QueueDispatcher) -> int:
    """Run until SIGTERM or SIGINT, then stop in good order. Answers the exit code.

    A second signal cuts the stop short and shows in the exit code; what is in hand then comes
    again, and makes no second job. Raises `WorkerUnhealthy` where `connection_retries` says so.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []
    told = asyncio.Event()
    hurry = asyncio.Event()

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            log.info("%s: storing what is here", signal.Signals(number).name)
            told.set()
        else:
            hurry.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await dispatcher.start()
        try:
            await _until(told, dispatcher)
        finally:
            await _stop(dispatcher, hurry)
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return 128 + received[1] if len(received) > 1 else 0


async def _until(told: asyncio.Event, dispatcher: QueueDispatcher) -> None:
    """Wait for a signal, or until broker or engine failed more often than is allowed."""
    retries = dispatcher.host.settings.connection_retries
    while not told.is_set():
        try:
            async with asyncio.timeout(LOOK):
                await told.wait()
        except TimeoutError:
            for each in (dispatcher.reader, *dispatcher.storers):
                if retries is not None and each.failures > retries:
                    raise WorkerUnhealthy(
                        f"{each.name} failed {each.failures} times in a row and "
                        f"connection_retries is {retries}: {each.last_error}"
                    ) from each.last_error


async def _stop(dispatcher: QueueDispatcher, hurry: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(dispatcher.stop())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({stopping, hurried}, return_when="FIRST_COMPLETED")
    hurried.cancel()
    if not stopping.done():
        stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
