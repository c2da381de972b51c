"""Waking up: soon after work or a cancel, also from another process."""

from __future__ import annotations

import asyncio

from headrace.engine.base import Engine
from tests.engine.conftest import Opener
from tests.support.verbs import a_worker, claim, enqueue


class Ear:
    """Hears signals, and waits for them with a limit."""

    def __init__(self) -> None:
        self.work = asyncio.Event()
        self.cancelled: asyncio.Queue[str] = asyncio.Queue()

    async def heard_work(self) -> None:
        await asyncio.wait_for(self.work.wait(), 60)


async def test_work_is_heard_from_this_and_another_process(
    engine: Engine, open_another: Opener
) -> None:
    ear = Ear()
    stop = await engine.listen(ear.work.set, ear.cancelled.put_nowait)
    assert engine.listening
    ear.work.clear()
    await enqueue(engine)
    await ear.heard_work()
    other = await open_another()
    ear.work.clear()
    await enqueue(other)
    await ear.heard_work()
    stop()


async def test_a_due_job_is_heard(engine: Engine, open_another: Opener) -> None:
    ear = Ear()
    other = await open_another()
    await enqueue(engine, delay=10)
    stop = await engine.listen(ear.work.set, ear.cancelled.put_nowait)
    ear.work.clear()
    engine.clock.advance(11)
    await other.promote_due(10)
    await ear.heard_work()
    stop()


async def test_a_cancel_of_a_running_job_is_heard(engine: Engine, open_another: Opener) -> None:
    ear = Ear()
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await claim(engine, worker)
    stop = await engine.listen(ear.work.set, ear.cancelled.put_nowait)
    other = await open_another()
    await other.cancel([job_id])
    assert await asyncio.wait_for(ear.cancelled.get(), 60) == job_id
    stop()


async def test_resuming_a_queue_is_heard(engine: Engine, open_another: Opener) -> None:
    ear = Ear()
    await engine.pause("default", True)
    stop = await engine.listen(ear.work.set, ear.cancelled.put_nowait)
    other = await open_another()
    ear.work.clear()
    await other.pause("default", False)
    await ear.heard_work()
    stop()
