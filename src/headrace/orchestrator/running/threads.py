"""Threads for handlers and stages that are plain functions.

A thread cannot be killed. When a function does not stop in time, its thread is abandoned: what it
returns is dropped, and other functions get threads of their own.

Invariants:
- A call gets a thread at once or an error: none waits behind a function that hangs.
- A function begins or is abandoned first, under a lock. One that is abandoned before a thread has
  taken it never begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from headrace.errors import Snooze
from headrace.orchestrator.running.attempt import Attempt

log = logging.getLogger("headrace.threads")

# Handlers are limited by the slots, and stages per attempt. A limit here as well would make them
# wait for functions that hang.
NO_LIMIT = 1_000_000
# A job whose thread cannot be started runs this much later, here or elsewhere. Its slot stays taken
# for a moment: a worker without threads must not put off a whole backlog.
NO_THREAD_SECONDS = 5.0
START_AGAIN_SECONDS = 1.0


class NoThread(Snooze):
    """A thread could not be started: the machine has no more of them, or no memory. The job is put
    off without spending an attempt.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(NO_THREAD_SECONDS, f"no thread could be started: {error}")


class Threads:
    """As many threads as are needed, however many are abandoned."""

    def __init__(self) -> None:
        # What runs in abandoned threads.
        self.abandoned: set[object] = set()
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._ended: deque[_ThreadCall] = deque()
        self._wakeup_pending = False

    def executor(self) -> Executor:
        """Return the thread pool. An idle thread is used again."""
        if self._executor is None:
            if self._closed:
                raise RuntimeError("the worker has stopped")
            self._executor = ThreadPoolExecutor(
                max_workers=NO_LIMIT, thread_name_prefix="headrace-job"
            )
        return self._executor

    async def run(self, attempt: Attempt, function: Callable[[], Any]) -> Any:
        """Run a handler in a thread. Called on the worker's event loop."""

        def begin() -> Any:
            if attempt.reason is not None:
                raise asyncio.CancelledError  # it was stopped before a thread had it
            return function()

        attempt.cooperative = True
        return await self._run(attempt, begin, self._report)

    async def run_stage(self, attempt: Attempt, function: Callable[[], Any]) -> Any:
        """Run the function of a stage in a thread. Called on any event loop."""
        return await self._run(attempt, function, _report_to_its_loop)

    def close(self) -> None:
        """Let idle threads end. Stuck ones go on until their functions return."""
        self._closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def warn(self, attempt: Attempt) -> None:
        """Log that a thread is abandoned."""
        job = attempt.job
        log.warning(
            "The thread of job %s (%s, attempt %d) cannot be stopped; it is abandoned and what "
            "it returns will be dropped. Check ctx.cancelled in long loops, or use "
            'isolate="process".',
            job.id,
            job.task,
            job.attempt,
        )

    async def _run(
        self, attempt: Attempt, function: Callable[[], Any], report: Callable[[_ThreadCall], None]
    ) -> Any:
        call = _ThreadCall(function, asyncio.get_running_loop().create_future(), report)
        # In a copy of this task's context variables.
        context = contextvars.copy_context()
        try:
            self.executor().submit(context.run, self._serve, call)
        except (RuntimeError, MemoryError) as error:
            # The pool may have queued it all the same, for the next of its threads to be idle.
            if self._abandon(call):
                job = attempt.job
                log.warning("Job %s (%s) is put off: no thread: %s", job.id, job.task, error)
                await asyncio.sleep(START_AGAIN_SECONDS)
                raise NoThread(error) from error
        try:
            await call.done
        except BaseException:
            if not self._abandon(call) and call in self.abandoned:
                self.warn(attempt)
            raise
        if call.error is not None:
            raise call.error
        return call.value

    def _abandon(self, call: _ThreadCall) -> bool:
        """Stop waiting for it. Return True if it will never begin."""
        with self._lock:
            if not call.begun:
                call.abandoned_early = True
                return True
            if not call.over:
                self.abandoned.add(call)
            return False

    # --- in a thread

    def _serve(self, call: _ThreadCall) -> None:
        """Run the function, then wake the event loop that waits for it."""
        with self._lock:
            if call.abandoned_early:
                return
            call.begun = True
        try:
            call.value = call.function()
        except BaseException as error:  # whatever a function raises fails its job
            call.error = error
        with self._lock:
            call.over = True
            self.abandoned.discard(call)
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            call.report(call)

    def _report(self, call: _ThreadCall) -> None:
        self._ended.append(call)
        # Waking the loop is expensive; one wake-up collects all that end before it.
        if not self._wakeup_pending:
            self._wakeup_pending = True
            call.done.get_loop().call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._wakeup_pending = False  # first: what ends from now on wakes the loop again
        ended = self._ended
        while ended:
            _resolve(ended.popleft().done)


class _ThreadCall:
    """One call. Errors are passed as values: a future refuses some, and SystemExit would end more
    than a job.
    """

    __slots__ = (
        "abandoned_early",
        "begun",
        "done",
        "error",
        "function",
        "over",
        "report",
        "value",
    )

    def __init__(
        self,
        function: Callable[[], Any],
        done: asyncio.Future[None],
        report: Callable[[_ThreadCall], None],
    ) -> None:
        self.function = function
        self.done = done
        self.report = report
        self.value: Any = None
        self.error: BaseException | None = None
        self.begun = False
        self.abandoned_early = False
        self.over = False


def _report_to_its_loop(call: _ThreadCall) -> None:
    call.done.get_loop().call_soon_threadsafe(_resolve, call.done)


def _resolve(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
