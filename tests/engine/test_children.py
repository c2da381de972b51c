"""Jobs that jobs have made: counted, listed and kept for those that wait for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Cancelled, Outcome, Settlement, Snoozed, TimedOut
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    fail,
    retry,
    settle,
    the_job,
)

A_DAY = 86_400.0


async def a_family(
    engine: Engine, worker: str, *groups: str | None, left: int = 0, group: str | None = None
) -> tuple[str, list[str]]:
    """A parent that waits for its children, one for each of these groups."""
    parent = await enqueue(engine, queue="parents")
    [job] = await claim(engine, worker, queues=["parents"])
    inserted = await engine.insert([a_job(parent=parent, group=each) for each in groups])
    assert await settle(engine, job, Snoozed(A_DAY, (AwaitedChildren(group, left),)))
    return parent, [each.id for each in inserted]


async def test_a_child_knows_its_parent(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, [first, second] = await a_family(engine, worker, "pages", None)
    job = await the_job(engine, first)
    assert (job.parent, job.group) == (parent, "pages")
    job = await the_job(engine, second)
    assert (job.parent, job.group) == (parent, None)
    jobs = await claim(engine, worker, limit=2)
    assert [job.parent for job in jobs] == [parent, parent]
    held = await engine.claimed_by(worker)
    assert [job.parent for job in held] == [parent, parent]
    await complete(engine, jobs[0])
    job = await the_job(engine, first)
    assert (job.status, job.parent, job.group) == (Status.COMPLETED, parent, "pages")
    assert (await the_job(engine, parent)).parent is None


@pytest.mark.parametrize("outcome", [None, TimedOut(A_FAILURE), Cancelled()], ids=repr)
async def test_a_parent_wakes_when_all_children_have_finished_somehow(
    engine: Engine, outcome: Outcome | None
) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker, "a", "a", "b")
    one, two, three = await claim(engine, worker, limit=3)
    await complete(engine, one)
    await (fail(engine, two) if outcome is None else settle(engine, two, outcome))
    assert await engine.wake([parent]) == []
    await complete(engine, three)
    assert await engine.wake([parent]) == [parent]


async def test_a_child_that_will_be_tried_again_is_unfinished(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker, "a")
    for delay in (0.0, 60.0):
        [child] = await claim(engine, worker)
        await retry(engine, child, delay)
        assert await engine.wake([parent]) == []
    clock.advance(61)
    await engine.promote_due(10)
    [child] = await claim(engine, worker)
    assert await engine.wake([parent]) == []
    await complete(engine, child)
    assert await engine.wake([parent]) == [parent]


async def test_a_cancelled_child_counts_as_finished(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, children = await a_family(engine, worker, "a", None)
    await engine.cancel(children)
    assert await engine.wake([parent]) == [parent]


async def test_groups_are_waited_for_apart(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, [child, _] = await a_family(engine, worker, "a", "b", group="a")
    await engine.cancel([child])
    assert await engine.wake([parent]) == [parent]


async def test_a_parent_can_wake_when_some_are_left(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, children = await a_family(engine, worker, "a", "a", "a", "a", group="a", left=2)
    await engine.cancel(children[:1])
    assert await engine.wake([parent]) == []
    await engine.cancel(children[1:2])
    assert await engine.wake([parent]) == [parent]


async def test_a_parent_without_children_need_not_wait(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker, "other", group="none")
    assert await engine.wake([parent]) == [parent]


async def test_a_child_that_is_run_again_is_unfinished_again(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, [child, other] = await a_family(engine, worker, "a", "a")
    await engine.cancel([child])
    assert await engine.rerun([child]) == [child]
    await engine.cancel([other])
    assert await engine.wake([parent]) == []
    [job] = await claim(engine, worker)
    assert (job.id, job.parent) == (child, parent)
    await complete(engine, job)
    assert await engine.wake([parent]) == [parent]


async def test_a_child_that_exists_is_not_made_again(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, _ = await a_family(engine, worker)
    child = a_job(parent=parent, group="a")
    [made] = await engine.insert([child])
    [again] = await engine.insert([child])
    assert (made.created, again.created, again.id) == (True, False, made.id)
    await engine.cancel([made.id])
    [again] = await engine.insert([child])
    assert not again.created
    assert await engine.wake([parent]) == [parent]


async def test_children_are_listed_by_parent_and_group(engine: Engine) -> None:
    worker = await a_worker(engine)
    parent, children = await a_family(engine, worker, "a", "b", "a", None)
    await a_family(engine, worker, "a")
    await engine.cancel(children[:1])

    async def listed(**fields: object) -> list[str]:
        ids: list[str] = []
        cursor = None
        while True:
            page = await engine.list_jobs(JobFilter(**fields), cursor=cursor, limit=2)  # type: ignore[arg-type]
            ids += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return ids

    newest = sorted(children, reverse=True)
    assert await listed(parent=parent) == newest
    expected = sorted([children[0], children[2]], reverse=True)
    assert await listed(parent=parent, group="a") == expected
    assert await listed(parent=parent, statuses=(Status.CANCELLED,)) == [children[0]]
    assert await listed(parent=parent, group="a", statuses=(Status.PENDING,)) == [children[2]]
    assert await listed(parent=children[0]) == []


async def test_children_of_an_unfinished_parent_are_not_pruned(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    parent, children = await a_family(engine, worker, "a", "a")
    await engine.cancel(children)
    alone = await enqueue(engine)
    await engine.cancel([alone])
    clock.advance(100)
    assert await engine.prune(older_than=50) == 1
    assert await engine.prune(keep=0) == 0
    assert len(await engine.get(children)) == 2
    assert await engine.wake([parent]) == [parent]
    [job] = await claim(engine, worker, queues=["parents"])
    await complete(engine, job)
    removed = 0
    while step := await engine.prune(keep=0):
        removed += step
    assert removed == 3
    assert await engine.get([parent, *children]) == []


@pytest.mark.parametrize("bound", [{"older_than": 50.0}, {"keep": 1}], ids=str)
async def test_children_are_not_pruned_before_their_parent(
    engine: Engine, clock: Clock, bound: dict[str, Any]
) -> None:
    """A parent that has failed may be run again, and asks for them then."""
    worker = await a_worker(engine)
    root = await enqueue(engine, queue="parents")
    [parent] = await claim(engine, worker, queues=["parents"])
    child = await enqueue(engine, queue="parents", parent=root, group="a")
    [job] = await claim(engine, worker, queues=["parents"])
    grandchild = await enqueue(engine, parent=child, group="a")
    await engine.cancel([grandchild])
    await complete(engine, job)
    alone = await enqueue(engine)
    await engine.cancel([alone])
    clock.advance(100)
    await fail(engine, parent)
    assert await engine.prune(**bound) == 1
    assert [each.id for each in await engine.get([root, child, grandchild, alone])] == [
        root,
        child,
        grandchild,
    ]
    clock.advance(100)
    await engine.cancel([await enqueue(engine)])
    removed = 0
    while step := await engine.prune(**bound):
        removed += step
    assert removed == 3


async def test_a_circle_of_parents_is_pruned(engine: Engine) -> None:
    first, second, own = new_id(), new_id(), new_id()
    await engine.insert([a_job(id=first, parent=second), a_job(id=second, parent=first)])
    await engine.insert([a_job(id=own, parent=own)])
    await engine.cancel([first, second, own])
    removed = 0
    while step := await engine.prune(keep=0):
        removed += step
    assert removed == 3


async def test_children_without_a_parent_in_the_store_are_pruned(
    engine: Engine, clock: Clock
) -> None:
    child = await enqueue(engine, parent="00000000-0000-7000-8000-000000000000", group="a")
    await engine.cancel([child])
    clock.advance(100)
    assert await engine.prune(older_than=50) == 1


async def test_the_last_child_always_wakes_its_parent(engine: Engine, open_another: Opener) -> None:
    """Whoever finishes last looks after that, so a parent is never forgotten."""
    engines = [engine, await open_another(), await open_another()]
    worker = await a_worker(engine)
    for _ in range(15):
        parent = await enqueue(engine, queue="parents")
        [job] = await claim(engine, worker, queues=["parents"])
        await engine.insert([a_job(parent=parent, group="a") for _ in range(2)])
        first, second = await claim(engine, worker, limit=2)

        async def step(door: Engine, settlement: Settlement, parent: str = parent) -> list[str]:
            await door.exchange([settlement])
            return await door.wake([parent])

        suspended = Snoozed(A_DAY, (AwaitedChildren("a"),))
        answers = await asyncio.gather(
            step(engines[0], Settlement(job.id, job.token, suspended)),
            step(engines[1], Settlement(first.id, first.token, Cancelled())),
            step(engines[2], Settlement(second.id, second.token, Cancelled())),
        )
        assert sorted(answers) == [[], [], [parent]]
        [job] = await claim(engine, worker, queues=["parents"])
        await complete(engine, job)
