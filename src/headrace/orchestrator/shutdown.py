"""Stopping a worker without loss: unstarted jobs are released, running ones may finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from headrace.errors import HeadraceError
from headrace.orchestrator.running.attempt import Reason, monotonic
from headrace.orchestrator.worker_parts import WorkerRuntime

log = logging.getLogger("headrace.worker")

# How long a handler may take to clean up after it was cancelled.
CANCEL_PATIENCE = 5.0
# How long to try to settle the last outcomes.
SETTLE_PATIENCE = 10.0


async def shut_down(runtime: WorkerRuntime, grace: float) -> None:
    """Stop everything in order. What cannot be settled is recovered when the lease lapses."""
    runtime.grace_until = min(runtime.grace_until, monotonic() + grace)
    await _stop_upkeep(runtime, last=False)
    runtime.dispatcher.drain()
    await _finish_running(runtime)
    await _settle(runtime)
    await runtime.dispatcher.stop()
    runtime.slots.stop()
    await runtime.writer.stop()
    await _update_families(runtime)
    await _stop_breakers(runtime)
    await _stop_upkeep(runtime, last=True)
    await runtime.lease_thread.stop()
    await runtime.deregister()
    log.info("Worker %s has stopped", runtime.name)


async def _stop_upkeep(runtime: WorkerRuntime, *, last: bool) -> None:
    await asyncio.gather(*(loop.stop() for loop in runtime.upkeep if loop.stops_last == last))


async def _finish_running(runtime: WorkerRuntime) -> None:
    while (left := runtime.grace_until - monotonic()) > 0 and (running := _unfinished(runtime)):
        runtime.grace_shortened.clear()
        hurried: asyncio.Future[Any] = asyncio.ensure_future(runtime.grace_shortened.wait())
        await asyncio.wait([*running, hurried], timeout=left, return_when="FIRST_COMPLETED")
        hurried.cancel()
    for attempt in runtime.slots.running():
        runtime.slots.deadlines.interrupt(attempt, Reason.STOPPED, patience=CANCEL_PATIENCE)
    end = monotonic() + CANCEL_PATIENCE
    while (left := end - monotonic()) > 0 and (stopping := _unfinished(runtime)):
        await asyncio.wait(stopping, timeout=left)
    for attempt in runtime.slots.running():
        runtime.slots.give_up(attempt)


def _unfinished(runtime: WorkerRuntime) -> list[asyncio.Future[Any]]:
    """Return the tasks to wait for. Reading them collects threads that are done, which may end the
    last attempt: only the returned list shows whether any is left.
    """
    return [task for task in runtime.slots.tasks() if not task.done()]


async def _update_families(runtime: WorkerRuntime) -> None:
    await runtime.family_updates.stop()
    with contextlib.suppress(HeadraceError, TimeoutError):
        # Upkeep does what is left, but later.
        await asyncio.wait_for(runtime.family_updates.flush(), SETTLE_PATIENCE)


async def _stop_breakers(runtime: WorkerRuntime) -> None:
    await runtime.breakers.stop()
    with contextlib.suppress(HeadraceError, TimeoutError):
        await asyncio.wait_for(runtime.breakers.flush(), SETTLE_PATIENCE)


async def _settle(runtime: WorkerRuntime) -> None:
    dispatcher = runtime.dispatcher
    end = monotonic() + SETTLE_PATIENCE
    # An exchange in flight may bring more jobs, which have to be released as well.
    while (
        (dispatcher.unsettled or dispatcher.in_flight)
        and dispatcher.running
        and (left := end - monotonic()) > 0
    ):
        dispatcher.wake()
        await dispatcher.next_round(left)
    if dispatcher.unsettled:
        log.error(
            "Worker %s could not record the outcomes of %d jobs: the engine is away. They will be "
            "run again after the lease has lapsed.",
            runtime.name,
            dispatcher.unsettled,
        )
