"""A user's program: an App with tasks, made for a store that no test may touch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from headrace import App, Chunk, Context, NotRetryable, RetryPolicy

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


@dataclass
class Row:
    number: int


@app.task(chunk=10, chunk_wait=300, retries=0)
async def store(chunk: Chunk[Row]) -> list[int]:
    ran.append([job.args.number for job in chunk])
    for job in chunk:
        if job.args.number == 13:
            job.fail(ValueError("thirteen"))
    return [job.args.number for job in chunk]


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
