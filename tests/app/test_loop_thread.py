"""The loop in a thread ends all that runs on it."""

from __future__ import annotations

import asyncio

from headrace.loops.loop_thread import LoopThread

GENERATIONS = 6


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
