"""The life of a child process: load the tasks, run one job after the other, leave."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import sys
from typing import Any

from headrace.errors import NotRetryable
from headrace.orchestrator.isolation import state
from headrace.orchestrator.isolation.failures import describe
from headrace.orchestrator.isolation.limits import cap_memory, is_capped, uncapped
from headrace.orchestrator.isolation.link import Link
from headrace.orchestrator.isolation.logs import Forwarder, set_levels
from headrace.orchestrator.isolation.messages import (
    FromChild,
    Raised,
    Ready,
    Returned,
    Run,
)
from headrace.orchestrator.isolation.remote import RemoteContext
from headrace.orchestrator.isolation.target import known, load, pick
from headrace.task.codec import encode


def serve(link: Link) -> None:
    """Run jobs until the worker wants no more."""
    start = link.start()
    sys.path[:] = map(os.fsdecode, start.path)
    sys.argv[:] = map(os.fsdecode, start.arguments)
    set_levels(start.levels)
    logging.getLogger().addHandler(Forwarder(link.send))
    try:
        if start.memory_limit is not None:
            cap_memory(start.memory_limit)
        with state.loading():
            holder = load(start.target, start.settings)
    except BaseException as error:
        with uncapped():
            link.send(Raised(describe(error)))
        return
    link.send(Ready())
    # One loop for the life of the process: clients that a module keeps belong to their loop.
    with asyncio.Runner() as runner:
        while (run := link.runs.get()) is not None:
            answer = _attempt(link, runner, holder, run)
            with uncapped():
                link.finish(answer)


def _attempt(link: Link, runner: asyncio.Runner, holder: Any, run: Run) -> FromChild:
    context = RemoteContext(link, run, known(holder))
    capped = is_capped()
    link.begin()
    try:
        # Each job in a context of its own, so that its contextvars do not reach the next.
        result = contextvars.copy_context().run(_handle, runner, holder, run, context)
        return Returned(result)
    except BaseException as error:
        # Also SystemExit: a handler that wants to leave has failed, the process has not.
        with uncapped():
            report = describe(error)
            if isinstance(error, MemoryError) and capped and not report.message:
                report.message = f"task {run.task!r} needs more than its memory_limit"
            return Raised(report)


def _handle(runner: asyncio.Runner, holder: Any, run: Run, context: RemoteContext) -> bytes:
    task = pick(holder, run.task)
    value = task.signature.call(context, task.signature.decode(run.args))
    if inspect.isawaitable(value):
        value = runner.run(_wait(value), context=contextvars.copy_context())
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotRetryable(
            f'task "{run.task}" returned what cannot be kept as its result: {error}; '
            "return plain data"
        ) from error


async def _wait(value: Any) -> Any:
    return await value
