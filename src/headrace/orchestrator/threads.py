"""Threads for handlers that are plain functions.

A thread cannot be killed. When a handler does not stop in time, its thread is left alone: what it
returns is dropped, and another thread takes its place.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from headrace.orchestrator.attempt import Attempt

log = logging.getLogger("headrace.threads")


class Threads:
    """As many threads as there are slots, however many have been given up."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.abandoned: set[Future[Any]] = set()
        self._executor: ThreadPoolExecutor | None = None
        self._stuck_here = 0

    def executor(self) -> Executor:
        """The pool that new work goes to."""
        if self._executor is None:
            # Twice the slots: stages of async handlers come here as well, and stuck ones stay.
            self._executor = ThreadPoolExecutor(
                max_workers=self.size * 2, thread_name_prefix="headrace-job"
            )
            self._stuck_here = 0
        return self._executor

    async def run(self, attempt: Attempt, call: Callable[[], Any]) -> Any:
        """Run a handler in a thread, in a copy of this task's context variables."""
        context = contextvars.copy_context()
        attempt.cooperative = True
        future = self.executor().submit(context.run, _guarded, call)
        try:
            value, error = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.done():
                self._abandon(future, attempt)
            raise
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let idle threads end. Stuck ones go on until their handlers return."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def _abandon(self, future: Future[Any], attempt: Attempt) -> None:
        job = attempt.job
        log.warning(
            "The thread of job %s (%s, attempt %d) cannot be stopped; it is left alone and what "
            "it returns will be dropped. Look at ctx.cancelled in long loops, or use "
            'isolate="process".',
            job.id,
            job.task,
            job.attempt,
        )
        self.abandoned.add(future)
        future.add_done_callback(self.abandoned.discard)
        self._stuck_here += 1
        if self._stuck_here >= self.size and self._executor is not None:
            # Half of this pool is stuck: begin another, so that every slot has a thread.
            self._executor.shutdown(wait=False)
            self._executor = None


def _guarded(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Errors travel as values: a future refuses some, and SystemExit would end more than a job."""
    try:
        return call(), None
    except BaseException as error:  # whatever a handler raises is its job's failure
        return None, error
