"""One timer for all uses of a connection."""

from __future__ import annotations

import asyncio

import pytest

from headrace.engine.postgres.connection.deadline import Deadline

LIMIT = 60.0


async def _wait(deadline: Deadline, seconds: float, event: asyncio.Event) -> None:
    deadline.begin(seconds)
    try:
        await event.wait()
    except asyncio.CancelledError as raised:
        error = deadline.cause_of(raised)
        if error is raised:
            raise
        raise error from raised
    finally:
        deadline.end()


async def test_what_takes_too_long_is_given_up_and_the_task_goes_on() -> None:
    deadline = Deadline()
    async with asyncio.timeout(LIMIT):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await _wait(deadline, 0.01, asyncio.Event())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_later_use_has_its_whole_time() -> None:
    """The timer of an earlier use goes off while it is waiting, and means nothing."""
    deadline, event = Deadline(), asyncio.Event()
    event.set()
    await _wait(deadline, 0.01, event)
    loop = asyncio.get_running_loop()
    event.clear()
    loop.call_later(0.05, event.set)
    await _wait(deadline, LIMIT, event)
    assert event.is_set()
    deadline.forget()


async def test_a_short_use_after_a_long_one_is_not_given_the_time_of_that() -> None:
    deadline, event = Deadline(), asyncio.Event()
    event.set()
    await _wait(deadline, 3600.0, event)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(TimeoutError):
            await _wait(deadline, 0.01, asyncio.Event())


async def test_a_cancel_by_somebody_else_stays_one() -> None:
    deadline = Deadline()
    task = asyncio.create_task(_wait(deadline, 3600.0, asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadline.forget()


async def test_a_cancel_together_with_the_deadline_counts() -> None:
    deadline = Deadline()
    task = asyncio.create_task(_wait(deadline, 3600.0, asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    deadline._until = 0.0
    deadline._check()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
