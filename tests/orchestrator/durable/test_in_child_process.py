"""Handlers in child processes sleep, wait and have children like all others."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

import headrace
from headrace.model.durable.awaited import AwaitedEvent
from headrace.model.status import Status
from headrace.testing import override
from tests.orchestrator.conftest import Worker
from tests.orchestrator.durable import handlers


@pytest.fixture
async def shop() -> AsyncIterator[headrace.App]:
    async with override(handlers.app) as app:
        yield app


async def test_everything_in_a_child_process(shop: headrace.App, worker: Worker) -> None:
    orchestrator = worker(shop)
    await orchestrator.start()
    job = await handlers.everything.enqueue()
    await orchestrator.run_until_idle()
    asleep = await shop.get(job.id)
    assert (asleep.status, asleep.stage, asleep.awaits) == (Status.SCHEDULED, "first", ())
    await orchestrator.stop()
    shop.clock.advance(3601)
    await orchestrator.run_until_idle()
    assert (await shop.get(job.id)).awaits == (AwaitedEvent("approved"),)
    await shop.signal(job.id, "approved", {"by": "Ana"})
    await orchestrator.run_until_idle()
    asleep = await shop.get(job.id)
    assert (asleep.status, asleep.stage, asleep.awaits) == (Status.SCHEDULED, "nested", ())
    shop.clock.advance(3601)
    await orchestrator.run_until_idle()
    over = await shop.get(job.id)
    assert over.status is Status.COMPLETED, over.error
    pid, by, leaves, nested, token = over.result
    assert pid != os.getpid()
    assert (by, leaves, nested, token) == ({"by": "Ana"}, [0, 1, 2], 1, 6)
    assert over.attempt == 1


async def test_sleeps_and_waits_at_once_in_a_child_process(
    shop: headrace.App, worker: Worker
) -> None:
    orchestrator = worker(shop)
    job = await handlers.at_once.enqueue()
    await orchestrator.start()
    await orchestrator.run_until_idle()
    asleep = await shop.get(job.id)
    assert asleep.status is Status.SCHEDULED, asleep.error
    await shop.signal(job.id, "approved", "by Ana")
    for _ in range(4):
        shop.clock.advance(201)
        await orchestrator.run_until_idle()
    over = await shop.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, ["by Ana", "slept"]), over.error
    assert over.attempt == 1


async def test_a_plain_function_in_a_child_process(shop: headrace.App, worker: Worker) -> None:
    orchestrator = worker(shop)
    job = await handlers.in_a_function.enqueue()
    await orchestrator.run_until_idle()
    shop.clock.advance(3601)
    await orchestrator.run_until_idle()
    expected = ["event 'approved' did not come in the time given", 2]
    assert (await shop.get(job.id)).result == expected


async def test_a_child_process_that_catches_everything(shop: headrace.App, worker: Worker) -> None:
    job = await handlers.greedy.enqueue()
    await worker(shop).run_until_idle()
    over = await shop.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert "caught headrace.Suspended" in (over.error or "")


async def test_a_stage_is_tried_again_in_its_child(shop: headrace.App, worker: Worker) -> None:
    job = await handlers.failing.enqueue()
    await worker(shop).run_until_idle()
    over = await shop.get(job.id)
    assert (over.status, over.error_type, over.error) == (Status.FAILED, "ValueError", "try 3")


async def test_stages_that_hang_in_a_child_process_do_not_use_up_its_threads(
    shop: headrace.App, worker: Worker
) -> None:
    job = await handlers.hanging_stages.enqueue(40)
    await worker(shop).run_until_idle()
    over = await shop.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, "DONE"), over.error
