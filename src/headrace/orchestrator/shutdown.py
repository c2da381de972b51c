"""Stopping a worker so that nothing is lost: unstarted jobs go back, running ones may finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from headrace.errors import HeadraceError
from headrace.orchestrator.running.attempt import Reason, monotonic
from headrace.orchestrator.runtime import Works

log = logging.getLogger("headrace.worker")

# How long a handler may take to clean up after it was cancelled.
CANCEL_PATIENCE = 5.0
# How long to try to tell the engine about the last outcomes.
SETTLE_PATIENCE = 10.0


async def shut_down(works: Works, grace: float) -> None:
    """Stop everything in order. What cannot be told to the engine is told by the lapsing lease."""
    works.grace_until = min(works.grace_until, monotonic() + grace)
    await asyncio.gather(*(loop.stop() for loop in works.upkeep))
    works.dispatcher.drain()
    await _finish_running(works)
    await _settle(works)
    await works.dispatcher.stop()
    works.slots.stop()
    await works.notes.stop()
    await _tell_relatives(works)
    await works.leases.stop()
    await works.take_leave()
    log.info("Worker %s has stopped", works.name)


async def _finish_running(works: Works) -> None:
    while (left := works.grace_until - monotonic()) > 0 and (running := _unfinished(works)):
        works.hurried.clear()
        hurried: asyncio.Future[Any] = asyncio.ensure_future(works.hurried.wait())
        await asyncio.wait([*running, hurried], timeout=left, return_when="FIRST_COMPLETED")
        hurried.cancel()
    for attempt in works.slots.running():
        works.interrupt(attempt, Reason.STOPPED, patience=CANCEL_PATIENCE)
    end = monotonic() + CANCEL_PATIENCE
    while (left := end - monotonic()) > 0 and (stopping := _unfinished(works)):
        await asyncio.wait(stopping, timeout=left)
    for attempt in works.slots.running():
        works.slots.give_up(attempt)


def _unfinished(works: Works) -> list[asyncio.Future[Any]]:
    """What there is to wait for. To look at the tasks may end the last of them, so whether any is
    left is seen only from what it answers; and a task that is done ends nothing any more.
    """
    return [task for task in works.slots.tasks() if not task.done()]


async def _tell_relatives(works: Works) -> None:
    await works.relatives.stop()
    with contextlib.suppress(HeadraceError, TimeoutError):
        # Upkeep finds what is left to do, but later.
        await asyncio.wait_for(works.relatives.flush(), SETTLE_PATIENCE)


async def _settle(works: Works) -> None:
    dispatcher = works.dispatcher
    end = monotonic() + SETTLE_PATIENCE
    # A trip that is under way may come back with more jobs, which have to be given back as well.
    while (
        (dispatcher.unsettled or dispatcher.under_way)
        and dispatcher.running
        and (left := end - monotonic()) > 0
    ):
        dispatcher.wake()
        await dispatcher.next_round(left)
    if dispatcher.unsettled:
        log.error(
            "Worker %s could not record the outcomes of %d jobs: the engine is away. They will be "
            "run again after the lease has lapsed.",
            works.name,
            dispatcher.unsettled,
        )
