"""A worker as a program: signals, exit codes, and waiting for an engine at the start."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import NoReturn

from headrace.errors import EngineUnavailable, WorkerUnhealthy
from headrace.loop import LONGEST_ALONE, backoff, spread
from headrace.orchestrator.orchestrator import JobOrchestrator

log = logging.getLogger("headrace.worker")

UNHEALTHY = 1
HUNG = 70
# The grace time after a second signal: handlers are cancelled at once.
NO_GRACE = 0.0
FIRST_PROCESS = 1


async def run_worker(orchestrator: JobOrchestrator) -> int:
    """Run until SIGTERM or SIGINT, then stop gracefully. Return the exit code.

    A second signal cuts the grace time short and shows in the exit code; a third ends the process.
    """
    if os.getpid() == FIRST_PROCESS:
        log.warning(
            "This is process number 1, which has to reap processes that lose their parent, and a "
            "worker cannot: start it by `headrace worker`, or with an init (docker run --init)"
        )
    loop = asyncio.get_running_loop()
    received: list[int] = []
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        received.append(number)
        name = signal.Signals(number).name
        match len(received):
            case 1:
                log.info("%s: finishing running jobs; send it again to stop at once", name)
                stop.set()
            case 2:
                log.warning("%s again: stopping at once", name)
                hurry.append(asyncio.ensure_future(orchestrator.stop(grace=NO_GRACE)))
            case _:
                _exit_now(128 + number)

    hurry: list[asyncio.Future[None]] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    orchestrator.on_hang = _hung
    try:
        if not await _start(orchestrator, stop):
            return 0
        code = await _serve(orchestrator, stop)
        await asyncio.gather(*hurry)
    except WorkerUnhealthy as error:
        log.critical("The worker could not start: %s", error)
        return UNHEALTHY
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return 128 + received[1] if len(received) > 1 else code


def exit_worker(orchestrator: JobOrchestrator, code: int) -> NoReturn:
    """End the process, even if threads of handlers do not stop."""
    if orchestrator.stuck_threads:
        log.warning("%d threads do not stop; ending without them", orchestrator.stuck_threads)
        _exit_now(code)
    sys.exit(code)


async def _start(orchestrator: JobOrchestrator, stop: asyncio.Event) -> bool:
    """Start, waiting while the engine is unavailable. Return False if stopped meanwhile."""
    retries = orchestrator.app.settings.connection_retries
    failures = 0
    while True:
        try:
            await orchestrator.start()
        except EngineUnavailable as error:
            failures += 1
            if retries is not None and failures > retries:
                raise WorkerUnhealthy(
                    f"the engine was unavailable {failures} times in a row and connection_retries "
                    f"is {retries}: {error}"
                ) from error
            pause = min(backoff(failures), LONGEST_ALONE)
            log.warning("The engine is unavailable, trying again in %g s: %s", pause, error)
        except WorkerUnhealthy:
            if stop.is_set():
                return False  # by a second signal, while it started
            raise
        else:
            return True
        try:
            await asyncio.wait_for(stop.wait(), spread(pause))
        except TimeoutError:
            continue
        return False


async def _serve(orchestrator: JobOrchestrator, stop: asyncio.Event) -> int:
    ended = asyncio.ensure_future(orchestrator.wait())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({ended, stopping}, return_when="FIRST_COMPLETED")
    stopping.cancel()
    await orchestrator.stop()
    try:
        await ended
    except WorkerUnhealthy:
        return UNHEALTHY
    return 0


def _hung() -> None:
    """On the lease thread: the loop hangs for good, so a graceful stop is impossible."""
    log.critical("The worker ends with code %d; its jobs are taken over by others", HUNG)
    _exit_now(HUNG)


def _exit_now(code: int) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
