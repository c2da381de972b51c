"""Tasks that leave something behind in every place where a job can: for async handlers, threads and
child processes. Whether they are encrypted is up to the settings of their App.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import msgspec

import headrace

app = headrace.App("sqlite://")

KINDS = ("async", "thread", "process")
# Values that are longer are kept as a file.
PAYLOAD_LIMIT = 4_000
FAST = headrace.RetryPolicy(retries=1, base=0.01, jitter=0)

# Everything that a job is given, and tells again somewhere.
PLACES = ("argument", "stage", "large", "event", "published", "progress", "error", "result")


class Paid(msgspec.Struct):
    """What is published."""

    text: str


app.event_type("paid.v1", Paid)


def make_markers() -> dict[str, str]:
    """Return texts that are nowhere else: one for each place."""
    return {place: f"{place}-{uuid4().hex}" for place in PLACES if place != "event"}


def value(text: str) -> str:
    """Return the value of a stage."""
    return text


def large(text: str) -> list[str]:
    """Return a value that is too large to be stored with the job."""
    return [text] * (PAYLOAD_LIMIT // len(text) + 1)


async def work(ctx: headrace.Context, markers: dict[str, str]) -> dict[str, Any]:
    """Store something everywhere, fail once, and return."""
    stage = await ctx.stage("short", value, markers["stage"])
    long = await ctx.stage("long", large, markers["large"])
    ctx.progress(50, markers["progress"])
    event = await ctx.wait("approved")
    if ctx.attempt == 1:
        raise ValueError(f"{markers['error']} of {event}")
    ctx.publish("paid.v1", Paid(markers["published"]), on="completed")
    assert long == large(markers["large"])
    return {"stage": stage, "event": event, "result": markers["result"]}


@app.task("async", retry=FAST)
async def in_loop(ctx: headrace.Context, markers: dict[str, str]) -> dict[str, Any]:
    return await work(ctx, markers)


@app.task("thread", retry=FAST)
def in_thread(ctx: headrace.Context, markers: dict[str, str]) -> dict[str, Any]:
    return asyncio.run(work(ctx, markers))


@app.task("process", retry=FAST, isolate="process")
async def in_process(ctx: headrace.Context, markers: dict[str, str]) -> dict[str, Any]:
    return await work(ctx, markers)
