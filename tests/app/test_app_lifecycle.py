"""Opening and closing, also while others are at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, HeadraceError
from tests.app.conftest import make_app
from tests.support.forks import forked

LIMIT = 60.0


class Gate:
    """Holds an engine's verb up until it is let through."""

    def __init__(self, engine: Engine, verb: str) -> None:
        self.entered, self.passed = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self._original: Callable[..., Coroutine[Any, Any, Any]] = getattr(engine, verb)
        setattr(engine, verb, self._held)

    async def _held(self, *args: Any, **fields: Any) -> Any:
        self.calls += 1
        self.entered.set()
        await self.passed.wait()
        return await self._original(*args, **fields)


@pytest.fixture
async def unopened(url: str) -> AsyncIterator[headrace.App]:
    app = make_app(url)
    yield app
    await app.close()


async def test_several_verbs_at_once_open_it_once(unopened: headrace.App) -> None:
    gate = Gate(unopened.engine, "open")
    gate.passed.set()
    await asyncio.gather(*(unopened.list() for _ in range(5)), unopened.open())
    assert gate.calls == 1


async def test_one_who_gives_up_does_not_take_the_other_openers_along(
    unopened: headrace.App,
) -> None:
    gate = Gate(unopened.engine, "open")
    first, second = asyncio.create_task(unopened.open()), asyncio.create_task(unopened.list())
    await gate.entered.wait()
    first.cancel()
    await asyncio.wait([first])
    gate.passed.set()
    assert (await asyncio.wait_for(second, LIMIT)).jobs == []
    assert (first.cancelled(), gate.calls) == (True, 1)


async def test_a_failed_opening_is_tried_again_by_the_next_verb(unopened: headrace.App) -> None:
    engine = unopened.engine
    original, calls = engine.open, 0

    async def fails_once() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise EngineUnavailable("not yet")
        await original()

    engine.open = fails_once  # type: ignore[method-assign]
    with pytest.raises(EngineUnavailable, match="not yet"):
        await unopened.open()
    assert (await unopened.list()).jobs == []


async def test_an_app_that_is_closed_while_it_is_opened_tells_so_and_can_be_used(
    unopened: headrace.App,
) -> None:
    """The engine that was being opened is closed, and no other is taken for it."""
    engine = unopened.engine
    gate, closing = Gate(engine, "open"), Gate(engine, "close")
    closing.passed.set()
    openers = [asyncio.create_task(unopened.open()), asyncio.create_task(unopened.list())]
    await gate.entered.wait()
    closer = asyncio.create_task(unopened.close())
    await asyncio.sleep(0)
    gate.passed.set()
    await asyncio.wait_for(closer, LIMIT)
    for opener in openers:
        with pytest.raises(EngineUnavailable, match="was closed while it was being opened"):
            await asyncio.wait_for(opener, LIMIT)
    assert closing.calls == 1
    job = await unopened.find_task("add").enqueue(a=1, b=2)
    assert (await unopened.get(job.id)).id == job.id


async def test_closing_twice_at_once_leaves_alone_what_was_opened_since(
    unopened: headrace.App,
) -> None:
    await unopened.open()
    gate = Gate(unopened.engine, "close")
    first, second = asyncio.create_task(unopened.close()), asyncio.create_task(unopened.close())
    await gate.entered.wait()
    await unopened.open()
    since = unopened.engine
    gate.passed.set()
    await asyncio.wait_for(asyncio.gather(first, second), LIMIT)
    assert unopened.engine is since
    assert (await unopened.list()).jobs == []


async def test_closing_tells_those_who_wait_for_a_result(unopened: headrace.App) -> None:
    jobs = [await unopened.find_task("add").enqueue(a=1, b=2) for _ in range(2)]
    looked = Gate(unopened.engine, "get")
    waiters = [asyncio.create_task(unopened.result(job.id)) for job in (*jobs, jobs[0])]
    await looked.entered.wait()
    await unopened.close()
    for job, waiter in zip((*jobs, jobs[0]), waiters, strict=True):
        with pytest.raises(EngineUnavailable, match=f"while somebody waited for job {job.id}"):
            await asyncio.wait_for(waiter, LIMIT)
    assert (await unopened.get(jobs[0].id)).status is headrace.Status.PENDING


async def test_nobody_closes_an_app_that_another_loop_uses(unopened: headrace.App) -> None:
    await unopened.open()
    told: list[BaseException] = []

    def elsewhere() -> None:
        try:
            asyncio.run(unopened.close())
        except HeadraceError as error:
            told.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join, LIMIT)
    assert "in use on another event loop" in str(told[0])
    assert (await unopened.list()).jobs == []


def test_jobs_in_memory_are_there_for_the_next_loop() -> None:
    """As with a test client that has a loop of its own for each request."""
    app = make_app("sqlite://")

    async def enqueue() -> str:
        return (await app.find_task("add").enqueue(a=1, b=1)).id

    made = [asyncio.run(enqueue()) for _ in range(3)]

    async def work() -> list[str]:
        await headrace.JobOrchestrator(app).run_until_idle()
        return sorted(job.id for job in (await app.list()).jobs if job.result == 2)

    assert asyncio.run(work()) == sorted(made)
    asyncio.run(app.close())


def test_jobs_in_memory_are_not_made_in_a_forked_child() -> None:
    app = make_app("sqlite://")
    asyncio.run(app.open())

    def enqueue() -> None:
        with pytest.raises(HeadraceError, match="in the memory of the process that this one was"):
            asyncio.run(app.find_task("add").enqueue(a=1, b=1))

    assert forked(enqueue) == 0
    asyncio.run(app.close())
