"""Threads for handlers that are plain functions.

A thread cannot be killed. When a handler does not stop in time, its thread is left alone: what it
returns is dropped, and another thread takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
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
        self._ended: deque[_Work] = deque()
        self._ringing = False

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
        attempt.cooperative = True
        work = _Work(call, asyncio.get_running_loop().create_future())
        context = contextvars.copy_context()
        future = self.executor().submit(context.run, self._serve, work)
        try:
            await work.answered
        except asyncio.CancelledError:
            if not work.over:
                self.abandon(future, attempt)
            raise
        if work.error is not None:
            raise work.error
        return work.value

    def _serve(self, work: _Work) -> None:
        """In a thread: do the work, and see to it that the event loop hears of it."""
        try:
            work.value = work.call()
        except BaseException as error:  # whatever a handler raises is its job's failure
            work.error = error
        work.over = True
        self._ended.append(work)
        # Waking the loop is dear; whoever ends before it has looked is found by the same look.
        if not self._ringing:
            self._ringing = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                work.answered.get_loop().call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._ringing = False  # first: what ends from now on rings again
        ended = self._ended
        while ended:
            answered = ended.popleft().answered
            if not answered.done():
                answered.set_result(None)

    def close(self) -> None:
        """Let idle threads end. Stuck ones go on until their handlers return."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def abandon(self, future: Future[Any], attempt: Attempt) -> None:
        """Leave a thread alone whose handler does not stop, and have another in its place."""
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


class _Work:
    """One call. Errors travel as values: a future refuses some, and SystemExit would end more than
    a job.
    """

    __slots__ = ("answered", "call", "error", "over", "value")

    def __init__(self, call: Callable[[], Any], answered: asyncio.Future[None]) -> None:
        self.call = call
        self.answered = answered
        self.value: Any = None
        self.error: BaseException | None = None
        self.over = False
