"""Tasks that run in child processes. Importing this does nothing else."""

from __future__ import annotations

from opentelemetry import trace

import headrace

app = headrace.App("sqlite://")


@app.task
async def leaf() -> None: ...


@app.task(isolate="process")
async def parent(ctx: headrace.Context) -> None:
    with trace.get_tracer("own").start_as_current_span("own work", attributes={"sizes": [1, 2]}):
        await ctx.spawn(leaf.job())
    ctx.then(leaf.job())


@app.task(isolate="process", retries=0)
def broken(secret: str) -> None:
    raise ValueError(f"cannot use {secret}")


@app.task(isolate="process", retries=0, timeout=60)
async def dying() -> None:
    import os

    with trace.get_tracer("own").start_as_current_span("last words"):
        pass
    os._exit(3)
