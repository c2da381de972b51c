"""Middleware: features around a job, each a small layer.

    async def timed(call_next, job, ctx):
        began = time.perf_counter()
        try:
            return await call_next()
        finally:
            ctx.log.info("took %.3f s", time.perf_counter() - began)

A layer may read the job, change what the handler returned, or raise instead. An object with
`async on_stage(job, stage, done)` is told about stages (`task/stage_hooks.py`). Without layers
there is no cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from headrace.errors import InvalidSetting
from headrace.model.durable.context import Context
from headrace.model.job import ClaimedJob
from headrace.task.stage_hooks import StageHook, check_hook

CallNext = Callable[[], Awaitable[Any]]
Layer = Callable[[CallNext, ClaimedJob, Context], Awaitable[Any]]
Chain = Layer


class StageLayer(Protocol):
    """A layer that is told about stages; it may be callable, too."""

    async def on_stage(self, job: ClaimedJob, stage: str, done: bool) -> None:
        """Called as the hooks of `app.on_stage` are."""


Middleware = Layer | StageLayer


def split(middleware: Sequence[Middleware]) -> tuple[list[Layer], list[StageHook]]:
    """Return the layers around jobs and the hooks on stages; one object may be both."""
    layers: list[Layer] = []
    hooks: list[StageHook] = []
    for each in middleware:
        hook = getattr(each, "on_stage", None)
        if hook is not None:
            hooks.append(check_hook(hook))
        if callable(each):
            layers.append(each)
        elif hook is None:
            raise InvalidSetting(
                f"middleware is called with call_next, job and ctx, or has on_stage, got {each!r}"
            )
    return layers, hooks


def chain_of(layers: Sequence[Layer]) -> Chain | None:
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
