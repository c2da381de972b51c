"""Pauses that end by themselves, whoever else pauses and resumes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.pauses import KEPT_SECONDS, KIND, Pause, described, end_pauses, pause, resume
from headrace.upkeep import EndPauses
from tests.engine.conftest import Opener
from tests.support.verbs import enqueue


async def is_paused(engine: Engine, queue: str = "mail") -> bool:
    return next(view.paused for view in await engine.queues() if view.name == queue)


def for_a_minute(clock: Clock, reason: str = "first") -> Pause:
    now = clock.utcnow()
    return Pause(at=now, by="ada", reason=reason, until=now + timedelta(seconds=60))


async def test_a_queue_is_resumed_when_its_pause_has_ended(engine: Engine, clock: Clock) -> None:
    await enqueue(engine, queue="mail")
    upkeep = EndPauses(engine=engine)
    await pause(engine, "mail", for_a_minute(clock))
    assert 0 < await upkeep.tick() < 10
    assert await is_paused(engine)
    clock.advance(61)
    await upkeep.tick()
    assert not await is_paused(engine)


async def test_a_pause_without_an_end_stays(engine: Engine, clock: Clock) -> None:
    await enqueue(engine, queue="mail")
    await pause(engine, "mail", Pause(at=clock.utcnow()))
    clock.advance(10 * 86_400)
    assert await end_pauses(engine) == []
    assert await is_paused(engine)


async def test_pauses_end_however_many_others_stay(engine: Engine, clock: Clock) -> None:
    await enqueue(engine, queue="mail")
    await pause(engine, "mail", for_a_minute(clock))
    # More than are listed at once, and before it in the order of names.
    for number in range(1_000):
        await engine.record_put(KIND, f"a{number}", msgspec.json.encode(Pause(at=clock.utcnow())))
    [view] = await described(engine, await engine.queues())
    assert view.paused_by == "ada"
    clock.advance(61)
    assert await end_pauses(engine) == ["mail"]
    assert not await is_paused(engine)


async def test_who_paused_is_told_and_forgotten(engine: Engine, clock: Clock) -> None:
    await enqueue(engine, queue="mail")
    await pause(engine, "mail", for_a_minute(clock, "provider is down"))
    [view] = await described(engine, await engine.queues())
    assert (view.paused_by, view.paused_reason) == ("ada", "provider is down")
    assert view.paused_until is not None
    await resume(engine, "mail", clock.utcnow())
    # A program of an earlier version knows no records: nothing is known of its pause.
    await engine.pause("mail", True)
    [view] = await described(engine, await engine.queues())
    assert view.paused
    assert (view.paused_by, view.paused_at, view.paused_until) == (None, None, None)
    clock.advance(KEPT_SECONDS + 1)
    assert await end_pauses(engine) == []
    assert await is_paused(engine)
    assert await engine.record_list(KIND) == []


class Interrupted:
    """An engine that lets something happen before one of its calls, the `turn`-th."""

    def __init__(self, engine: Engine, turn: int, then: Callable[[], Any]) -> None:
        self._engine, self._left, self._then = engine, turn, then

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)

        async def call(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                await self._then()
            return await verb(*args, **options)

        return call

    @property
    def happened(self) -> bool:
        return self._left <= 0


@pytest.mark.parametrize("turn", range(1, 10))
async def test_a_pause_that_is_renewed_meanwhile_goes_on(
    engine: Engine, open_another: Opener, clock: Clock, turn: int
) -> None:
    await enqueue(engine, queue="mail")
    other = await open_another()
    await pause(engine, "mail", for_a_minute(clock))
    clock.advance(61)

    async def renew() -> None:
        await pause(other, "mail", for_a_minute(clock, "second"))

    upkeep = Interrupted(engine, turn, renew)
    await end_pauses(upkeep)
    if not upkeep.happened:
        await renew()
    assert await is_paused(engine)
    [view] = await described(engine, await engine.queues())
    assert view.paused_reason == "second"
    assert await end_pauses(engine) == []
    assert await is_paused(engine)
    clock.advance(61)
    assert await end_pauses(engine) == ["mail"]
    assert not await is_paused(engine)


@pytest.mark.parametrize("turn", range(2, 8))
async def test_two_upkeeps_at_once_resume_it_once(
    engine: Engine, open_another: Opener, clock: Clock, turn: int
) -> None:
    await enqueue(engine, queue="mail")
    other = await open_another()
    await pause(engine, "mail", for_a_minute(clock))
    clock.advance(61)
    resumed: list[str] = []

    async def at_once() -> None:
        resumed.extend(await end_pauses(other))

    upkeep = Interrupted(engine, turn, at_once)
    resumed.extend(await end_pauses(upkeep))
    assert resumed == ["mail"]
    assert not await is_paused(engine)
    assert await end_pauses(engine) == []


@pytest.mark.parametrize("turn", range(4, 8))
async def test_an_upkeep_that_dies_leaves_the_rest_to_another(
    engine: Engine, open_another: Opener, clock: Clock, turn: int
) -> None:
    await enqueue(engine, queue="mail")
    await pause(engine, "mail", for_a_minute(clock))
    clock.advance(61)

    async def die() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await end_pauses(Interrupted(engine, turn, die))
    await end_pauses(await open_another())
    assert not await is_paused(engine)
