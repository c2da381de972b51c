"""A cron dispatcher as a program: signals, and waiting for an engine that is not there yet."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from headrace.dispatchers.cron.config import read_file
from headrace.dispatchers.cron.dispatcher import CronDispatcher, ScheduledApp
from headrace.errors import EngineUnavailable, InvalidInput
from headrace.loops.free_memory import memory_given_back
from headrace.loops.signals import (
    check_failures,
    on_stop_signals,
    start_when_available,
    wait_checking,
)

log = logging.getLogger("headrace.cron")


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
    """Run until SIGTERM or SIGINT, then end after what is under way. Return the exit code.

    Raises what is wrong with declared schedules, and `WorkerUnhealthy` if the engine is away for
    longer than `connection_retries` allows.
    """
    stop = asyncio.Event()
    retries = dispatcher.app.settings.connection_retries

    def check() -> None:
        if isinstance(dispatcher.last_error, EngineUnavailable):
            check_failures(dispatcher.failures, dispatcher.last_error, retries=retries)

    with on_stop_signals(lambda _: stop.set()), memory_given_back():
        try:
            if await start_when_available(dispatcher.sync, stop, retries=retries, log=log):
                dispatcher.start()
                await wait_checking(stop, check)
        finally:
            await dispatcher.stop()
    return 0
