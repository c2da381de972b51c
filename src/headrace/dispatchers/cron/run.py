"""A cron dispatcher as a program: signals, and waiting for an engine that is not there yet."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

from headrace.dispatchers.cron.config import read_file
from headrace.dispatchers.cron.dispatcher import CronDispatcher, ScheduledApp
from headrace.errors import EngineUnavailable, InvalidInput, WorkerUnhealthy
from headrace.loop import LONGEST_ALONE, backoff, spread

log = logging.getLogger("headrace.cron")

LOOK = 0.5


def cron_dispatcher(app: ScheduledApp, config: Path | None = None) -> CronDispatcher:
    """A dispatcher with the settings and schedules of a file; by default of the usual one, if it
    exists. Everything in the file is checked, also against the tasks of the App.
    """
    file = read_file(config)
    if file is None:
        return CronDispatcher(app)
    least = file.settings.min_cron_interval_seconds
    for schedule in file.schedules:
        try:
            app.schedules.checked(schedule, least)
        except InvalidInput as error:
            error.add_note(file.at(schedule.name))
            raise
    return CronDispatcher(app, settings=file.settings, files={str(file.path): file.schedules})


async def run_cron(dispatcher: CronDispatcher) -> int:
    """Run until SIGTERM or SIGINT, then end after what is under way. Answers the exit code.

    Raises what is wrong with declared schedules, and `WorkerUnhealthy` if the engine is away for
    longer than `connection_retries` allows.
    """
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, told.set)
    try:
        if await _stored(dispatcher, told):
            dispatcher.start()
            await _until(told, dispatcher)
    finally:
        await dispatcher.stop()
        for number in numbers:
            loop.remove_signal_handler(number)
    return 0


async def _stored(dispatcher: CronDispatcher, told: asyncio.Event) -> bool:
    """Store what is declared, waiting for the engine. False: told to stop before it came."""
    failures = 0
    while True:
        try:
            await dispatcher.sync()
        except EngineUnavailable as error:
            failures += 1
            _give_up(dispatcher, failures, error)
            pause = min(backoff(failures), LONGEST_ALONE)
            log.warning("The engine is away, trying again in %g s: %s", pause, error)
        else:
            return True
        try:
            await asyncio.wait_for(told.wait(), spread(pause))
        except TimeoutError:
            continue
        return False


async def _until(told: asyncio.Event, dispatcher: CronDispatcher) -> None:
    while not told.is_set():
        try:
            await asyncio.wait_for(told.wait(), LOOK)
        except TimeoutError:
            if isinstance(dispatcher.last_error, EngineUnavailable):
                _give_up(dispatcher, dispatcher.failures, dispatcher.last_error)


def _give_up(dispatcher: CronDispatcher, failures: int, error: BaseException) -> None:
    retries = dispatcher.app.settings.connection_retries
    if retries is not None and failures > retries:
        raise WorkerUnhealthy(
            f"the engine was not there {failures} times in a row and connection_retries is "
            f"{retries}: {error}"
        ) from error
