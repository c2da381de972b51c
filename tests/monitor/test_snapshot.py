"""Snapshots: shared by all who ask, and new once somebody has changed something."""

from __future__ import annotations

import asyncio

import headrace
from headrace.monitor.snapshot import Snapshots


async def test_a_change_makes_the_next_one_new(app: headrace.App) -> None:
    snapshots = Snapshots(app)
    old = await snapshots.get()
    assert await snapshots.get() is old
    await app.pause("mail")
    snapshots.forget()
    new = await snapshots.get()
    assert [each.paused for each in new.queues] == [True]
    assert await snapshots.get() is new


async def test_a_read_from_before_the_change_is_given_to_nobody_else(app: headrace.App) -> None:
    snapshots = Snapshots(app)
    before = asyncio.create_task(snapshots.get())
    # The read has begun, and goes on while something is changed.
    await asyncio.sleep(0)
    snapshots.forget()
    after = await snapshots.get()
    assert await before is not after
    assert await snapshots.get() is after
