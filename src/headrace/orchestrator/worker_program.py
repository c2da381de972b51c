"""A worker as a program: signals, exit codes, and waiting for an engine at the start."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import NoReturn

from headrace.errors import WorkerUnhealthy
from headrace.loops.free_memory import memory_given_back
from headrace.loops.signals import exit_code, exit_now, on_stop_signals, start_when_available
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
    stop = asyncio.Event()
    hurry: list[asyncio.Future[None]] = []

    def finish(number: signal.Signals) -> None:
        log.info("%s: finishing running jobs; send it again to stop at once", number.name)
        stop.set()

    def stop_at_once(number: signal.Signals) -> None:
        log.warning("%s again: stopping at once", number.name)
        hurry.append(asyncio.ensure_future(orchestrator.stop(grace=NO_GRACE)))

    orchestrator.on_hang = _hung
    with (
        on_stop_signals(finish, stop_at_once, lambda number: exit_now(128 + number)) as received,
        memory_given_back(),
    ):
        try:
            if not await _start(orchestrator, stop):
                return 0
            code = await _serve(orchestrator, stop)
            await asyncio.gather(*hurry)
        except WorkerUnhealthy as error:
            log.critical("The worker could not start: %s", error)
            return UNHEALTHY
    return exit_code(received, code)


def exit_worker(orchestrator: JobOrchestrator, code: int) -> NoReturn:
    """End the process, even if threads of handlers do not stop."""
    if orchestrator.stuck_threads:
        log.warning("%d threads do not stop; ending without them", orchestrator.stuck_threads)
        exit_now(code)
    sys.exit(code)


async def _start(orchestrator: JobOrchestrator, stop: asyncio.Event) -> bool:
    """Start the worker. Return False if it was stopped before the engine was available."""
    retries = orchestrator.app.settings.connection_retries
    try:
        return await start_when_available(orchestrator.start, stop, retries=retries, log=log)
    except WorkerUnhealthy:
        if stop.is_set():
            return False  # by a second signal, while it started
        raise


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
    exit_now(HUNG)
