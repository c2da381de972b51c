"""The loop in a thread ends all that runs on it."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Coroutine
from typing import Any

from headrace.loops.loop_thread import LoopThread

GENERATIONS = 6
LIMIT = 10.0


def test_tasks_that_others_start_while_they_are_cancelled_are_cancelled_as_well() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def start_another() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            if len(tasks) < GENERATIONS:
                tasks.append(asyncio.create_task(start_another()))
                await asyncio.sleep(0)  # let it begin

    async def begin() -> None:
        tasks.append(asyncio.create_task(start_another()))
        await asyncio.sleep(0)

    async def nothing() -> None:
        return

    thread = LoopThread("headrace-test", last=nothing, would_block="no")
    thread.run(begin())
    thread.stop()
    assert [task.done() for task in tasks] == [True] * GENERATIONS


async def test_the_end_of_a_loop_leaves_no_coroutine_that_nobody_awaits() -> None:
    """anyio hands a coroutine to a task, which awaits it in its first step."""
    ended = asyncio.Event()

    async def inner() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def outer(coroutine: Coroutine[Any, Any, None]) -> None:
        await coroutine

    tasks: list[asyncio.Task[None]] = []

    async def last() -> None:
        # Not begun yet when the others are cancelled.
        if not tasks:
            tasks.append(asyncio.create_task(outer(inner())))

    async def begin() -> None:
        pass

    thread = LoopThread("a test", last=last, would_block="")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        await asyncio.to_thread(thread.run, begin())
        await asyncio.wait_for(asyncio.to_thread(thread.stop), LIMIT)
        [task] = tasks
        assert task.cancelled()
        tasks.clear()
        del task
        gc.collect()
    assert [str(each.message) for each in told] == []
    assert ended.is_set()
