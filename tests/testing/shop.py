"""A user's program: an App with tasks, made for a store that no test may touch."""

from __future__ import annotations

import os

from headrace import App, Context, NotRetryable, RetryPolicy

app = App("sqlite:////nowhere/at/all/production.db")
ran: list[object] = []


@app.task
async def greet(name: str) -> str:
    ran.append(name)
    return f"hello {name}"


@app.task(retry=RetryPolicy(retries=3, base=100))
async def flaky(ctx: Context, fails: int) -> int:
    ran.append(ctx.attempt)
    if ctx.attempt <= fails:
        raise ConnectionError(f"attempt {ctx.attempt}")
    return ctx.attempt


@app.task()
def broken() -> None:
    raise NotRetryable("for good")


@app.task(isolate="process")
def where() -> int:
    ran.append("here")
    return os.getpid()


@app.task
async def keep(ctx: Context) -> str:
    return await ctx.artifacts.put("file.txt", b"kept")


@app.task
async def chain(ctx: Context, left: int) -> None:
    ran.append(left)
    if left:
        await chain.options(delay=60).enqueue(left=left - 1)
