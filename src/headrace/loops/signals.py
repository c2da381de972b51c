"""Programs that run until SIGTERM or SIGINT: their signals, and an engine that is not there yet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import NoReturn

from headrace.errors import EngineRefused, EngineUnavailable, WorkerUnhealthy
from headrace.loops.loop import LONGEST_ALONE, backoff, spread

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
CHECK_SECONDS = 0.5

OnSignal = Callable[[signal.Signals], object]


@contextlib.contextmanager
def on_stop_signals(*steps: OnSignal) -> Iterator[list[signal.Signals]]:
    """Call the first step at the first signal, the second at the second, and so on; the last one
    again at all further ones. Yields the signals received so far.
    """
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def handle(number: int) -> None:
        received.append(signal.Signals(number))
        steps[min(len(received), len(steps)) - 1](received[-1])

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, handle, number)
    try:
        yield received
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


def exit_code(received: list[signal.Signals], code: int = 0) -> int:
    """Return the exit code: 128 + signal if a second signal cut the stop short."""
    return 128 + received[1] if len(received) > 1 else code


async def start_when_available(
    start: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    retries: int | None,
    log: logging.Logger,
) -> bool:
    """Start, waiting for an engine that is away. Return False if `stop` was set first. Raises
    `WorkerUnhealthy` after more failures than `retries`, and `EngineRefused` at once: the settings
    are wrong, and nobody would look for that in the log of a program that runs.
    """
    failures = 0
    while True:
        try:
            await start()
        except EngineRefused:
            raise
        except EngineUnavailable as error:
            failures += 1
            check_failures(failures, error, retries=retries)
            pause = min(backoff(failures), LONGEST_ALONE)
            log.warning("The engine is away, trying again in %g s: %s", pause, error)
        else:
            return True
        try:
            await asyncio.wait_for(stop.wait(), spread(pause))
        except TimeoutError:
            continue
        return False


def check_failures(
    failures: int,
    error: BaseException | None,
    *,
    retries: int | None,
    what: str = "the engine was not there",
) -> None:
    """Raise `WorkerUnhealthy` after more failures in a row than `retries` allows."""
    if retries is not None and failures > retries:
        raise WorkerUnhealthy(
            f"{what} {failures} times in a row and connection_retries is {retries}: {error}"
        ) from error


async def wait_checking(stop: asyncio.Event, check: Callable[[], None]) -> None:
    """Wait until `stop` is set, calling `check` now and then; what that raises ends the wait."""
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), CHECK_SECONDS)
        except TimeoutError:
            check()


def exit_now(code: int) -> NoReturn:
    """End the process without waiting for threads."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
