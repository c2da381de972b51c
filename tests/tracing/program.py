"""A program with a job of three stages and two children, which publishes an event."""

from __future__ import annotations

import logging

import msgspec
from opentelemetry import trace

import headrace

DONE = "order.done.v1"
log = logging.getLogger("shop.orders")


class Done(msgspec.Struct):
    """What is told of an order."""

    order: str


app = headrace.App()  # HEADRACE_URL says where
app.event_type(DONE, Done)


async def fetched(order: str) -> str:
    log.warning("fetching %s", order)
    return order


def parsed(order: str) -> list[str]:
    return [f"{order}-1", f"{order}-2"]


@app.task
async def order(ctx: headrace.Context, order: str, password: str = "") -> int:
    found = await ctx.stage("fetch", fetched, order)
    parts = await ctx.stage("parse", parsed, found)
    sizes = await ctx.gather([part.job(each) for each in parts])
    total: int = await ctx.stage("add up", sum, sizes)
    ctx.publish(DONE, {"order": order})
    return total


@app.task(isolate="process")
async def part(ctx: headrace.Context, name: str) -> int:
    ctx.log.warning("measuring\x1b[31m %s", name)
    logging.getLogger("shop.parts").warning("a line of its own\nfor %s", name)
    with trace.get_tracer("shop").start_as_current_span("own work"):
        return await ctx.stage("measure", len, name)
