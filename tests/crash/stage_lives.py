"""A worker with many lives: it dies at every point around a stage, and is born again at once.

Run as `python -m tests.crash.stage_lives URL LIVES SEED`. Each life is a fork of this process, so
that a thousand deaths do not take an hour. In half of them the worker kills itself at a point that
chance chooses; in the others it is killed from outside after a time that chance chooses. The last
life goes on until all jobs are done. What was done is in the journal; how the lives ended is
printed as JSON.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

import headrace
from headrace.errors import WaitTimedOut
from headrace.model.durable.entries import STAGE
from headrace.model.durable.writes import Note
from tests.crash import journal
from tests.crash.journal import Line

STAGES = ("one", "two", "three", "four")
CHILDREN = 3
# At so many points a life passes by unharmed, on average.
SPARED = 60
# How long a life lasts that is ended from outside, at most, in seconds.
LONGEST = 0.4


class Fate:
    """When this life ends, if it ends by itself."""

    def __init__(self) -> None:
        self.chance = random.Random(0)
        self.mortal = False

    def reach(self, point: str) -> None:
        """Die here, perhaps."""
        if self.mortal and self.chance.random() < 1 / SPARED:
            journal.write(Line(event="died", stage=point))
            os.kill(os.getpid(), signal.SIGKILL)


fate = Fate()


def tell(ctx: headrace.Context, event: str, stage: str) -> None:
    journal.write(Line(event=event, job=ctx.job_id, token=ctx.token, stage=stage))


async def step(ctx: headrace.Context, name: str) -> int:
    """What a stage does: something outside that can be counted."""
    tell(ctx, "begun", name)
    fate.reach("inside, before the effect")
    tell(ctx, "effect", name)
    fate.reach("inside, after the effect")
    return ctx.token


def make_app(url: str) -> headrace.App:
    app = headrace.App(url, lease_seconds=30)
    many = headrace.RetryPolicy(retries=10_000, base=0.0)

    @app.task(retry=many)
    async def leaf(ctx: headrace.Context, number: int) -> int:
        await ctx.stage("leaf", step, ctx, "leaf")
        return number

    @app.task(retry=many)
    async def staged(ctx: headrace.Context) -> list[int]:
        """Stages, and between them children and a wait that ends by itself."""
        tokens = []
        for name in STAGES:
            fate.reach("before the stage")
            tokens.append(await ctx.stage(name, step, ctx, name))
            fate.reach("after the stage")
            if name == "two":
                numbers = await ctx.gather([leaf.job(number) for number in range(CHILDREN)])
                assert numbers == list(range(CHILDREN))
            if name == "three":
                try:
                    await ctx.wait("never", timeout=0)
                except WaitTimedOut:
                    fate.reach("after the wait")
        return tokens

    return app


def watch(app: headrace.App) -> None:
    """Points of death around the write that makes a stage finished."""
    write = app.engine.write_progress

    async def watched(notes: Sequence[Note]) -> Any:
        stages = any(entry.kind == STAGE for each in notes for entry in each.entries)
        if stages:
            fate.reach("before the checkpoint")
        answer = await write(notes)
        if stages:
            fate.reach("after the checkpoint")
        return answer

    setattr(app.engine, "write_progress", watched)  # noqa: B010 - a method of this one engine


async def live(url: str, *, until_done: bool) -> None:
    async with make_app(url) as app:
        watch(app)
        worker = headrace.JobOrchestrator(app, name="steady", max_workers=4)
        await worker.start()
        while True:
            queues = await app.engine.queues()
            busy = any(q.scheduled + q.waiting + q.ready + q.running for q in queues)
            if until_done and not busy:
                break
            await asyncio.sleep(0.05)
        await worker.stop()


def born(url: str, seed: int, *, way: str) -> int:
    """Begin a life, and answer its process id."""
    child = os.fork()
    if child:
        return child
    logging.disable(logging.CRITICAL)
    fate.chance, fate.mortal = random.Random(seed), way == "by itself"
    code = 1
    try:
        asyncio.run(live(url, until_done=way == "to the end"))
        code = 0
    finally:
        os._exit(code)


def ended(pid: int, limit: float) -> int:
    """How a life ended; if it has not within the limit, it does now."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def main() -> None:
    """All lives, one after the other."""
    url, lives, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    for life in range(lives):
        way = "by itself" if chance.random() < 0.5 else "from outside"
        pid = born(url, chance.randrange(2**32), way=way)
        # One that has nothing left to do would live for ever.
        limit = chance.uniform(0.05, LONGEST) if way == "from outside" else 5 * LONGEST
        status = ended(pid, limit)
        ends["killed" if os.WIFSIGNALED(status) else f"life {life} ended: {status}"] += 1
    pid = born(url, 0, way="to the end")
    _, status = os.waitpid(pid, 0)
    ends["lived on"] += status == 0
    print(msgspec.json.encode(ends).decode())


if __name__ == "__main__":
    main()
