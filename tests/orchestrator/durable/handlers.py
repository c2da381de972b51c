"""Tasks that run in child processes. Importing this does nothing else."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import msgspec

import headrace

app = headrace.App("sqlite://")


class Leaf(msgspec.Struct):
    number: int
    pid: int


@app.task
async def leaf(number: int) -> Leaf:
    return Leaf(number, os.getpid())


@app.task(isolate="process")
async def everything(ctx: headrace.Context) -> list[object]:
    """A stage, a sleep, an event, children, and a stage that does all of it."""
    first = await ctx.stage("first", os.getpid)
    await ctx.sleep(3600)
    by = await ctx.wait("approved")
    leaves = await ctx.gather([leaf.job(number) for number in range(3)], group="leaves")
    assert all(isinstance(each, Leaf) for each in leaves)

    async def inner() -> int:
        await ctx.sleep(3600)
        return len(await ctx.gather([leaf.job(7)]))

    nested = await ctx.stage("nested", inner)
    return [first, by, [each.number for each in leaves], nested, ctx.token]


@app.task(isolate="process")
async def two_stages(ctx: headrace.Context) -> None:
    await ctx.stage("first", int)
    await ctx.stage("second", int, done="both")


@app.task(isolate="process")
async def at_once(ctx: headrace.Context) -> list[object]:
    """Sleeps and waits beside each other, in the handler and in a stage of it."""

    async def inner() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep(100, name="in a stage"))
        return "slept"

    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.sleep(100, name="short"))
        group.create_task(ctx.sleep(200, name="long"))
        event = group.create_task(ctx.wait("approved"))
    return [event.result(), await ctx.stage("inner", inner)]


@app.task(isolate="process")
def in_a_function(ctx: headrace.Context) -> list[object]:
    asyncio.run(ctx.sleep(3600))
    try:
        asyncio.run(ctx.wait("approved", timeout=0))
    except headrace.WaitTimedOut as error:
        return [str(error), ctx.token]
    return []


@app.task(isolate="process")
async def greedy(ctx: headrace.Context) -> str:
    try:
        await ctx.sleep(3600)
    except BaseException:
        return "went on"
    return "slept"


@app.task(isolate="process", retries=0)
async def failing(ctx: headrace.Context) -> None:
    await ctx.stage("failing", _fail, retry=headrace.RetryPolicy(retries=2, base=0.01))


calls: list[int] = []


async def _fail() -> None:
    calls.append(1)
    raise ValueError(f"try {len(calls)}")


@app.task(isolate="process", retries=0)
async def beside(ctx: headrace.Context, folder: str) -> list[object]:
    """A stage that goes on until there is a file, beside a wait."""

    async def work() -> str:
        with (Path(folder) / "begun").open("a") as begun:
            begun.write("x")
        while not (Path(folder) / "go").exists():  # noqa: ASYNC110 - told from elsewhere
            await asyncio.sleep(0.01)
        return "work"

    return list(await asyncio.gather(ctx.stage("work", work), ctx.wait("approved")))


@app.task(isolate="process", retries=0)
async def caught(ctx: headrace.Context) -> str:
    """A stage that fails while a wait beside it would leave the handler."""

    async def fail() -> None:
        while not ctx.running_stages._leaving:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        raise ValueError("no luck")

    try:
        await asyncio.gather(ctx.stage("fail", fail), ctx.wait("never"))
    except ValueError:
        return "caught"
    return "not reached"


@app.task(isolate="process", retry=headrace.RetryPolicy(retries=1, base=0.01))
async def left_behind(ctx: headrace.Context, folder: str) -> str:
    """The first attempt fails while a stage runs beside it, until there is a file."""

    async def work() -> str:
        with (Path(folder) / "runs").open("a") as runs:
            runs.write("[")
        while not (Path(folder) / "go").exists():  # noqa: ASYNC110 - told from elsewhere
            await asyncio.sleep(0.01)
        with (Path(folder) / "runs").open("a") as runs:
            runs.write("]")
        return "work"

    async def fail() -> None:
        while not (Path(folder) / "runs").exists():  # noqa: ASYNC110 - told from the other
            await asyncio.sleep(0.01)
        raise ValueError("no luck")

    if ctx.attempt == 1:
        await asyncio.gather(ctx.stage("work", work), fail())
    return await ctx.stage("work", work)


@app.task(isolate="process", retries=0)
async def hanging_stages(ctx: headrace.Context, count: int) -> str:
    """Stages that are plain functions and hang, then one that does not."""
    for number in range(count):
        try:
            await ctx.stage("hangs", threading.Event().wait, key=number, timeout=0.05)
        except headrace.StageTimedOut:
            continue
    return await ctx.stage("last", "done".upper, timeout=20)


@app.task(isolate="process", retry=headrace.RetryPolicy(retries=3, base=5))
async def secretive(ctx: headrace.Context, log: str) -> list[str]:
    """Fails once before the text is masked, and once after that."""
    text = await ctx.stage("parsing", _parse, log, transient="masking")
    masked = await ctx.stage("masking", _mask, text, log)
    if ctx.attempt == 2:
        raise ConnectionError("away")
    return [repr(text), masked]


def _parse(log: str) -> object:
    with Path(log).open("a") as file:
        file.write("parse\n")
    return {"no JSON": object(), "text": "UNMASKED"}


def _mask(text: dict[str, str], log: str) -> str:
    with Path(log).open("a") as file:
        file.write("mask\n")
    if Path(log).read_text().count("mask") == 1:
        raise ConnectionError("away")
    return text["text"][:2]


def _follow(ctx: headrace.Context) -> tuple[list[str], list[str]]:
    refusals = []
    for jobs in ([leaf.job(0)] * 1_001, [leaf]):
        try:
            ctx.then(*jobs)
        except headrace.InvalidInput as error:
            refusals.append(str(error))
    return ctx.then(leaf.job(1), leaf.job(2)), refusals


@app.task(isolate="process")
async def followed(ctx: headrace.Context) -> tuple[list[str], list[str]]:
    return _follow(ctx)


@app.task(isolate="process")
def followed_function(ctx: headrace.Context) -> tuple[list[str], list[str]]:
    return _follow(ctx)


@app.task(isolate="process", timeout=2, retries=0)
def followed_and_hangs(ctx: headrace.Context) -> None:
    ctx.then(leaf.job(0), on="completed")
    ctx.then(leaf.job(1), on="failed")
    threading.Event().wait()
