"""What upkeep does for jobs that wait for others, on every engine."""

from __future__ import annotations

from headrace import job_tree
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.awaited import AwaitedChildren, AwaitedEvent
from headrace.model.outcome import Snoozed
from headrace.model.status import Status
from headrace.upkeep import Sweep, Wake
from tests.support.verbs import (
    LEASE,
    a_worker,
    claim,
    complete,
    enqueue,
    settle,
    status,
)

A_DAY = 86_400.0


async def a_family(engine: Engine, worker: str, count: int = 2) -> tuple[str, list[str]]:
    """A parent that waits for its children."""
    parent = await enqueue(engine, queue="parents")
    children = [
        await enqueue(engine, queue="children", parent=parent, group="g", max_attempts=1)
        for _ in range(count)
    ]
    [job] = await claim(engine, worker, queues=["parents"])
    assert await settle(engine, job, Snoozed(A_DAY, (AwaitedChildren("g"),)))
    return parent, children


async def test_wake_finds_waits_that_are_over(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker)
    waiting = await enqueue(engine, queue="parents")
    [job] = await claim(engine, worker, queues=["parents"])
    await settle(engine, job, Snoozed(A_DAY, (AwaitedEvent("e"),)))
    wake = Wake(engine=engine)
    assert 8 <= await wake.tick() <= 12
    assert await status(engine, parent) is await status(engine, waiting) is Status.SCHEDULED
    # Somebody delivers and somebody ends, and both die before they tell.
    await engine.signal(waiting, "e", b"1")
    for child in await claim(engine, worker, 10, queues=["children"]):
        await complete(engine, child)
    await wake.tick()
    assert await status(engine, parent) is await status(engine, waiting) is Status.PENDING


async def test_wake_goes_through_any_number_page_by_page(engine: Engine) -> None:
    worker = await a_worker(engine)
    for _ in range(7):
        job_id = await enqueue(engine)
        [job] = await claim(engine, worker)
        await settle(engine, job, Snoozed(A_DAY, (AwaitedEvent("e"),)))
        await engine.signal(job_id, "e", b"1")
    wake = Wake(engine=engine, page=3)
    assert [await wake.tick() == 0.0 for _ in range(3)] == [True, True, False]
    assert await engine.suspended() == []


async def test_a_lost_child_wakes_its_parent(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker)
    gone = await a_worker(engine, "gone")
    assert len(await claim(engine, gone, 10, queues=["children"])) == 2
    clock.advance(LEASE + 1)
    await Sweep(engine=engine, clock=clock, lease_seconds=LEASE).tick()
    assert await status(engine, parent) is Status.PENDING


async def test_a_lost_parent_that_was_cancelled_reaches_its_children(
    engine: Engine, clock: Clock
) -> None:
    gone = await a_worker(engine, "gone")
    parent = await enqueue(engine, queue="parents")
    assert len(await claim(engine, gone, queues=["parents"])) == 1
    await engine.cancel([parent])
    child = await enqueue(engine, queue="children", parent=parent, group="g")
    clock.advance(LEASE + 1)
    await Sweep(engine=engine, clock=clock, lease_seconds=LEASE).tick()
    assert await status(engine, parent) is await status(engine, child) is Status.CANCELLED


async def test_a_cancel_that_was_cut_short_is_completed_by_the_next(engine: Engine) -> None:
    """Somebody died after the first of three generations."""
    worker = await a_worker(engine)
    parent, children = await a_family(engine, worker)
    [child, _] = await claim(engine, worker, 10, queues=["children"])
    grandchild = await enqueue(engine, queue="later", parent=child.id, group="g")
    await settle(engine, child, Snoozed(A_DAY))
    await engine.cancel([parent])
    await engine.cancel([child.id])
    assert await status(engine, grandchild) is Status.PENDING
    assert await job_tree.cancel(engine, [parent]) == {}
    assert await status(engine, grandchild) is Status.CANCELLED
    [running] = [each for each in children if each != child.id]
    assert await status(engine, running) is Status.RUNNING
