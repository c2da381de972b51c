"""The main loop of a child process: load the tasks, run one job after the other, exit."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any

from headrace.errors import NotRetryable, PayloadTooLarge
from headrace.orchestrator.isolation.child import loading_guard
from headrace.orchestrator.isolation.child.channel import ChildChannel
from headrace.orchestrator.isolation.child.context import RemoteContext
from headrace.orchestrator.isolation.child.resource_limits import (
    cap_memory,
    is_capped,
    no_alarm_left,
    uncapped,
)
from headrace.orchestrator.isolation.error_transport import describe
from headrace.orchestrator.isolation.log_forwarding import Forwarder, set_levels
from headrace.orchestrator.isolation.protocol import (
    ENVELOPE,
    FromChild,
    Raised,
    Ready,
    Returned,
    RunJob,
)
from headrace.orchestrator.isolation.task_reference import known, load, pick
from headrace.orchestrator.running.outcomes import caught_suspension
from headrace.task.codec import encode_exact
from headrace.tracing import find_tracing
from headrace.tracing.forwarding import forward_spans

log = logging.getLogger("headrace.orchestrator.isolation")


def serve(channel: ChildChannel) -> None:
    """Run jobs until the worker says `Stop`."""
    start = channel.start()
    sys.path[:] = map(os.fsdecode, start.path)
    sys.argv[:] = map(os.fsdecode, start.arguments)
    set_levels(start.levels)
    logging.getLogger().addHandler(Forwarder(channel.send))
    try:
        # Before the limit: what tracing needs is not the task's.
        tracing = find_tracing("on") if start.tracing else None
        if start.memory_limit is not None:
            cap_memory(start.memory_limit)
        with loading_guard.loading():
            holder = load(start.target, start.settings)
        if tracing is not None:
            forward_spans(channel.send)
            channel.tracing = tracing
    except BaseException as error:
        channel.leave_if_forked(error)
        with uncapped():
            channel.send(Raised(0, describe(error)))
        return
    channel.leave_if_forked()
    channel.send(Ready())
    limit = start.payload_limit or start.longest - ENVELOPE
    # One loop for all jobs: clients that a module creates once belong to their loop.
    with asyncio.Runner() as runner:
        while (run := channel.runs.get()) is not None:
            with no_alarm_left():
                end = _attempt(channel, runner, holder, run, limit)
            channel.leave_if_forked()
            with uncapped():
                channel.finish(end)


def _attempt(
    channel: ChildChannel, runner: asyncio.Runner, holder: Any, run: RunJob, limit: int
) -> FromChild:
    context = RemoteContext(channel, run, known(holder))
    capped = is_capped()
    channel.begin()
    try:
        # Each job in a context of its own, so that its contextvars do not reach the next.
        result = contextvars.copy_context().run(_handle, channel, runner, run, context, holder)
    except BaseException as error:
        channel.leave_if_forked(error)
        # Also SystemExit: the handler has failed then, but the process goes on.
        with uncapped():
            report = describe(error)
            if isinstance(error, MemoryError) and capped and not report.message:
                report.message = f"task {run.task!r} needs more than its memory_limit"
            return Raised(run.run, report)
    if len(result) <= limit:
        return Returned(run.run, result)
    too_large = PayloadTooLarge(
        f'task "{run.task}": the result takes {len(result):,} bytes, the limit is {limit:,}; keep '
        "it as an artifact and return a reference, or raise HEADRACE_PAYLOAD_LIMIT"
    )
    with uncapped():
        return Raised(run.run, describe(too_large, retryable=False))


def _handle(
    channel: ChildChannel, runner: asyncio.Runner, run: RunJob, context: RemoteContext, holder: Any
) -> bytes:
    if channel.tracing is not None:
        channel.tracing.continue_from(run.trace)
    task = pick(holder, run.task)
    value = task.signature.call(context, task.signature.decode(run.args))
    if inspect.isawaitable(value):
        value = _complete(runner.get_loop(), _wait(value, channel, context))
    else:
        _check_left(context)
    try:
        return encode_exact(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotRetryable(
            f'task "{run.task}" returned what cannot be kept as its result: {error}; '
            "return plain data"
        ) from error


def _check_left(context: RemoteContext) -> None:
    """Raise if the handler caught `Suspended`. Called when it returns: a task that it has left
    behind may still be suspended later.
    """
    if context.suspended:
        raise caught_suspension(context.task)


async def _wait(value: Any, channel: ChildChannel, context: RemoteContext) -> Any:
    """Return what a handler returns, once the stages that it has left running have ended: the next
    attempt would run them at the same time. If they have to stop, the worker kills this process.
    """
    try:
        try:
            returned = await value
            _check_left(context)
            return returned
        finally:
            if (
                "running_stages" in context.__dict__
                and context.running_stages.any
                and not channel.forked
            ):
                await context.running_stages.end(wait=True)
    except BaseException as error:
        # Now, since a copy must not run the loop any further: it shares it with the child.
        channel.leave_if_forked(error)
        raise
    finally:
        channel.leave_if_forked()


def _complete(loop: asyncio.AbstractEventLoop, handler: Coroutine[Any, Any, Any]) -> Any:
    """Run the loop until this handler is done, also if something else stops it: a task that an
    earlier job has left there may raise SystemExit.
    """
    task = loop.create_task(handler, context=contextvars.copy_context())
    while not task.done():
        try:
            loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt):
            if not task.done():
                log.exception("a task that an earlier job left behind raised; the process goes on")
        except RuntimeError:
            if task.done() or loop.is_closed() or loop.is_running():
                raise
            log.exception("the event loop was stopped while a handler ran; it is run again")
    return task.result()
