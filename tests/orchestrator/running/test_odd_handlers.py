"""Handlers that end in odd ways: each costs its job an attempt and ends in an outcome."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, ended, until

ODD = 5


class Unspeakable(Exception):
    """Its text cannot be had, and neither can anything else."""

    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        raise KeyboardInterrupt(name)


class Cunning(type):
    def __instancecheck__(cls, instance: object) -> bool:
        raise LookupError

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise LookupError


class Nameless(Exception, metaclass=Cunning):
    pass


class Model:
    """Looks like a pydantic model, and cannot be dumped."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @classmethod
    def model_validate(cls, _: Any) -> Any: ...

    def model_dump(self, **_: Any) -> Any:
        raise self.error


def _late() -> BaseException:
    error = headrace.RetryLater(delay=1)
    error.delay = "soon"  # type: ignore[assignment]
    return error


def _group(*errors: BaseException) -> BaseException:
    return BaseExceptionGroup("several", errors)


ERRORS: dict[str, Callable[[], BaseException]] = {
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": functools.partial(SystemExit, 0),
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "CancelledError": asyncio.CancelledError,
    "BaseException": functools.partial(BaseException, "\ud800\x00"),
    "unspeakable": Unspeakable,
    "nameless": Nameless,
    "late": _late,
    "long name": type("E" * 100_000, (Exception,), {}),
    "group": lambda: _group(GeneratorExit(), SystemExit(1)),
    "empty suspension": lambda: _group(headrace.Suspended("x", ()), ValueError()),  # type: ignore[arg-type]
    "odd suspension": lambda: headrace.Suspended("x", ()),  # type: ignore[arg-type]
}
WAYS = ["async", "def", "awaited", "stage", "def-stage", "result", "layer"]


async def _through(call_next: Any, job: Any, ctx: Any) -> Any:
    value = await call_next()
    if value == "layer":
        raise ERRORS[ctx.key.split("/")[1]]()
    return value


# What a layer raises is of interest only where there is one.
CASES = [(way, ()) for way in WAYS if way != "layer"] + [(way, (_through,)) for way in WAYS]


@pytest.mark.parametrize(
    ("way", "layers"),
    CASES,
    ids=[f"{way}-{'in layers' if each else 'bare'}" for way, each in CASES],
)
async def test_whatever_ends_a_handler_costs_an_attempt_and_frees_its_slot(
    local: headrace.App, worker: Worker, way: str, layers: tuple[Any, ...]
) -> None:

    @local.task("async", retries=0, timeout=ODD)
    async def coroutine(kind: str) -> None:
        raise ERRORS[kind]()

    @local.task("def", retries=0, timeout=ODD)
    def function(kind: str) -> None:
        raise ERRORS[kind]()

    @local.task("awaited", retries=0, timeout=ODD)
    def awaited(kind: str) -> Any:
        return coroutine.function(kind)

    @local.task("stage", retries=0, timeout=ODD)
    async def stage(ctx: headrace.Context, kind: str) -> None:
        await ctx.stage("odd", coroutine.function, kind)

    @local.task("def-stage", retries=0, timeout=ODD)
    async def function_stage(ctx: headrace.Context, kind: str) -> None:
        await ctx.stage("odd", function.function, kind)

    @local.task("result", retries=0, timeout=ODD)
    async def result(kind: str) -> Any:
        return Model(ERRORS[kind]())

    @local.task("layer", retries=0, timeout=ODD)
    async def layer(kind: str) -> str:
        return "layer"

    orchestrator = worker(local, max_workers=2, middleware=layers)
    await orchestrator.start()
    jobs = {
        kind: await local.tasks[way].options(key=f"{way}/{kind}").enqueue(kind) for kind in ERRORS
    }
    over = {kind: await ended(local, job) for kind, job in jobs.items()}
    seen = {kind: (job.status, job.attempt) for kind, job in over.items()}
    assert seen == dict.fromkeys(ERRORS, (Status.FAILED, 1))
    runtime = orchestrator._runtime
    assert runtime is not None
    await until(lambda: runtime.dispatcher.idle)
    assert (runtime.slots.busy, len(runtime.slots._free)) == (0, 2)


async def test_a_coroutine_that_raises_generator_exit_is_tried_again_and_fails(
    app: headrace.App, worker: Worker
) -> None:
    runs: list[int] = []

    @app.task(retry=headrace.RetryPolicy(retries=1, base=0), lane="one")
    async def rude(ctx: headrace.Context) -> None:
        runs.append(ctx.attempt)
        raise GeneratorExit

    @app.task(lane="one")
    async def behind() -> str:
        return "fine"

    await worker(app, max_workers=1).start()
    first, second = await rude.enqueue(), await behind.enqueue()
    assert await app.result(second.id, timeout=20) == "fine"
    over = await ended(app, first)
    assert (over.status, over.error_type, runs) == (Status.FAILED, "GeneratorExit", [1, 2])
