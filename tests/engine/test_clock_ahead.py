"""Pruning by age after the clock was wrong for a while: wrong times hold nobody else up."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from tests.support.verbs import a_job, enqueue

DAY = 86_400.0


async def finished(engine: Engine, count: int) -> list[str]:
    """Jobs that have ended now."""
    ids = [each.id for each in await engine.insert([a_job() for _ in range(count)])]
    await engine.cancel(ids)
    return ids


async def left(engine: Engine, ids: list[str]) -> int:
    return len(await engine.get(ids))


# More in front than one step looks at.
MANY = 2_500


@pytest.mark.parametrize("behind", [0, MANY])
async def test_jobs_from_when_the_clock_was_ahead_hold_up_no_others(
    engine: Engine, clock: Clock, behind: int
) -> None:
    clock.offset = 10 * DAY
    ahead = await finished(engine, MANY)
    clock.offset = 0.0
    old = await finished(engine, 200)
    clock.offset = 2 * DAY
    young = await finished(engine, behind)
    pruned = 0
    for _ in range(10):
        pruned += await engine.prune(older_than=DAY, limit=100)
    assert (pruned, await left(engine, old)) == (200, 0)
    assert await left(engine, ahead + young) == MANY + behind
    # They are old when the clock says so.
    clock.offset = 12 * DAY
    while step := await engine.prune(older_than=DAY, limit=1_000):
        pruned += step
    assert pruned == 200 + MANY + behind


async def test_jobs_from_when_the_clock_was_ahead_hold_up_no_others_when_it_has_caught_up(
    engine: Engine, clock: Clock
) -> None:
    """Their time has come by then, but they are younger than many that ended after them."""
    clock.offset = 2 * DAY
    ahead = await finished(engine, MANY)
    clock.offset = 0.0
    old = await finished(engine, 200)
    clock.offset = 2.5 * DAY
    assert await engine.prune(older_than=DAY) == 200
    assert (await left(engine, old), await left(engine, ahead)) == (0, MANY)


async def test_jobs_from_when_the_clock_was_behind_take_no_others_with_them(
    engine: Engine, clock: Clock
) -> None:
    clock.offset = 10 * DAY
    before = await finished(engine, MANY)
    clock.offset = 0.0
    behind = await finished(engine, 200)
    clock.offset = 10 * DAY
    after = await finished(engine, MANY)
    assert await engine.prune(older_than=DAY) == 200
    assert await engine.prune(older_than=DAY) == 0
    assert (await left(engine, behind), await left(engine, before + after)) == (0, 2 * MANY)
    clock.offset = 10.5 * DAY
    young = await finished(engine, 100)
    clock.offset = 11.2 * DAY
    pruned = 0
    for _ in range(10):
        pruned += await engine.prune(older_than=DAY)
    assert (pruned, await left(engine, young)) == (2 * MANY, 100)


async def test_spared_children_in_front_change_nothing(engine: Engine, clock: Clock) -> None:
    parent = await enqueue(engine, queue="parents")
    children = [each.id for each in await engine.insert([a_job(parent=parent) for _ in range(20)])]
    await engine.cancel(children)
    clock.offset = 10 * DAY
    ahead = await finished(engine, MANY)
    clock.offset = 0.0
    old = await finished(engine, 200)
    clock.offset = 2 * DAY
    assert await engine.prune(older_than=DAY) == 200
    assert await left(engine, old) == 0
    assert await left(engine, children + ahead) == 20 + MANY
