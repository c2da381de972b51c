"""The tasks of a run: every kind of handler, and every way in which a job can end or go on."""

from __future__ import annotations

import asyncio
import time

import headrace

QUICK = headrace.RetryPolicy(retries=3, base=0.2, factor=1.0)
NAMES = 400
"""So many tasks are there to be used for the first time, one after the other."""

CONTENT = b"what a job keeps\n" * 200


def register(app: headrace.App) -> headrace.App:
    """Make these the tasks of an App."""

    @app.task("plain")
    async def plain(number: int, seconds: float = 0.0) -> int:
        await asyncio.sleep(seconds)
        return number

    @app.task("threaded")
    def threaded(number: int, seconds: float = 0.0) -> int:
        time.sleep(seconds)
        return number

    @app.task("isolated", isolate="process", retry=QUICK)
    def isolated(number: int, seconds: float = 0.0) -> int:
        time.sleep(seconds)
        return number

    @app.task("laned", lane="{lane}", retry=QUICK)
    async def laned(lane: str, number: int) -> str:
        await asyncio.sleep(0.01)
        return f"{lane} {number}"

    @app.task("shaky", retry=QUICK)
    async def shaky(ctx: headrace.Context, number: int) -> int:
        if ctx.attempt < 3:
            raise OSError(f"attempt {ctx.attempt} of {number} fails")
        return number

    @app.task("failing", retries=0)
    async def failing(number: int) -> None:
        raise ValueError(f"{number} is not one that I like")

    @app.task("late", retries=0, timeout=0.3)
    async def late(number: int) -> None:
        await asyncio.sleep(30)

    @app.task("staged", retry=QUICK)
    async def staged(ctx: headrace.Context, number: int) -> int:
        total = 0
        for stage in ("fetch", "parse", "store"):
            total += await ctx.stage(stage, step, number)
            ctx.progress(total % 100, f"{stage} is done")
        return total

    @app.task("told")
    async def told(ctx: headrace.Context, number: int) -> int:
        for percent in range(0, 100, 20):
            ctx.progress(percent, f"{percent} of 100")
            await asyncio.sleep(0.05)
        return number

    @app.task("napping")
    async def napping(ctx: headrace.Context, number: int) -> int:
        await ctx.sleep(1.5)
        return number

    @app.task("waiting")
    async def waiting(ctx: headrace.Context, number: int) -> str:
        try:
            return str(await ctx.wait("go", timeout=10))
        except headrace.WaitTimedOut:
            return "nobody came"

    @app.task("parent", retry=QUICK)
    async def parent(ctx: headrace.Context, number: int) -> int:
        return sum(await ctx.gather([plain.job(number=each) for each in range(3)], group="all"))

    @app.task("filing", retry=QUICK)
    async def filing(ctx: headrace.Context, number: int) -> str:
        return await ctx.artifacts.put(f"{number}.txt", CONTENT, layer="gold")

    @app.task("ingest", retry=QUICK)
    async def ingest(ctx: headrace.Context, file: str) -> int:
        return len(await ctx.artifacts.get(file))

    @app.task("long", retries=0)
    async def long(ctx: headrace.Context, number: int) -> None:
        await asyncio.sleep(40)

    async def named(number: int) -> int:
        return number

    for count in range(NAMES):
        app.task(name_of(count))(named)

    return app


async def step(number: int) -> int:
    """The function of a stage."""
    return number


def name_of(count: int) -> str:
    """The name of a task that is used for the first time when its turn comes."""
    return f"named.{count % NAMES:04}"
