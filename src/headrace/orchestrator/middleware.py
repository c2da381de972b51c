"""Middleware: features around a job, each a small layer.

    async def timed(call_next, job, ctx):
        began = time.perf_counter()
        try:
            return await call_next()
        finally:
            ctx.log.info("took %.3f s", time.perf_counter() - began)

A layer may read the job, change what the handler returned, or raise instead. Without layers there
is no cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from headrace.model.context import Context
from headrace.model.job import ClaimedJob

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[CallNext, ClaimedJob, Context], Awaitable[Any]]
Chain = Callable[[CallNext, ClaimedJob, Context], Awaitable[Any]]


def chain_of(layers: Sequence[Middleware]) -> Chain | None:
    """Return one layer made of many, the first outermost; None for none."""
    if not layers:
        return None
    outer, *inner = layers
    rest = chain_of(inner)
    if rest is None:
        return outer

    def chained(call_next: CallNext, job: ClaimedJob, context: Context) -> Awaitable[Any]:
        return outer(lambda: rest(call_next, job, context), job, context)

    return chained
