"""Tasks that run in child processes. Importing this does nothing else."""

from __future__ import annotations

import os

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
    with trace.get_tracer("own").start_as_current_span("last words"):
        pass
    os._exit(3)


@app.task(isolate="process", retries=0)
def odd() -> int:
    """End a span with values that cannot be sent as they are, and one in a copy of the process."""
    tracer = trace.get_tracer("own")
    with tracer.start_as_current_span("odd", attributes={"half": "a \ud800", "list": ["\ud800"]}):
        pass
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with tracer.start_as_current_span("of a copy"):
                pass
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
