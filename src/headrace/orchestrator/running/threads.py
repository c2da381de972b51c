"""Threads for handlers and stages that are plain functions.

A thread cannot be killed. When a function does not stop in time, its thread is left alone: what it
returns is dropped, and others get threads of their own.

Invariants:
- Whoever asks for a thread gets one at once or an error: nobody waits behind a function that hangs.
- A function begins or is left, never both: both happen under a lock. What was left before a thread
  had it, is never begun.
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

# Handlers are bounded by the slots, and stages by what each attempt may run at once. A bound here
# as well would have them wait for functions that hang.
NO_LIMIT = 1_000_000
# A job whose thread cannot be started is run so much later, here or elsewhere. Its slot is kept a
# little: a worker that has no threads must not put off a whole backlog.
NO_THREAD_SECONDS = 5.0
START_AGAIN_SECONDS = 1.0


class NoThread(Snooze):
    """A thread could not be started: the machine has no more of them, or no memory. For no fault of
    the job's, so it is put off without spending an attempt.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(NO_THREAD_SECONDS, f"no thread could be started: {error}")


class Threads:
    """As many threads as are needed, however many have been left alone."""

    def __init__(self) -> None:
        # What runs in threads that were left alone.
        self.abandoned: set[object] = set()
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._ended: deque[_ThreadCall] = deque()
        self._wakeup_pending = False

    def executor(self) -> Executor:
        """Where functions run. A thread that is idle is used again."""
        if self._executor is None:
            if self._closed:
                raise RuntimeError("the worker has stopped")
            self._executor = ThreadPoolExecutor(
                max_workers=NO_LIMIT, thread_name_prefix="headrace-job"
            )
        return self._executor

    async def run(self, attempt: Attempt, function: Callable[[], Any]) -> Any:
        """Run a handler in a thread, on the worker's event loop."""

        def begin() -> Any:
            if attempt.reason is not None:
                raise asyncio.CancelledError  # it was told to stop before a thread had it
            return function()

        attempt.cooperative = True
        return await self._run(attempt, begin, self._tell)

    async def run_stage(self, attempt: Attempt, function: Callable[[], Any]) -> Any:
        """Run the function of a stage in a thread, asked for on whichever event loop."""
        return await self._run(attempt, function, _tell_its_loop)

    def close(self) -> None:
        """Let idle threads end. Stuck ones go on until their functions return."""
        self._closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def warn(self, attempt: Attempt) -> None:
        """Say that a thread is left alone whose function does not stop."""
        job = attempt.job
        log.warning(
            "The thread of job %s (%s, attempt %d) cannot be stopped; it is left alone and what "
            "it returns will be dropped. Look at ctx.cancelled in long loops, or use "
            'isolate="process".',
            job.id,
            job.task,
            job.attempt,
        )

    async def _run(
        self, attempt: Attempt, function: Callable[[], Any], tell: Callable[[_ThreadCall], None]
    ) -> Any:
        call = _ThreadCall(function, asyncio.get_running_loop().create_future(), tell)
        # In a copy of this task's context variables.
        context = contextvars.copy_context()
        try:
            self.executor().submit(context.run, self._serve, call)
        except (RuntimeError, MemoryError) as error:
            # The pool may have taken it in all the same, for the next of its threads to be idle.
            if self._leave(call):
                job = attempt.job
                log.warning("Job %s (%s) is put off: no thread: %s", job.id, job.task, error)
                await asyncio.sleep(START_AGAIN_SECONDS)
                raise NoThread(error) from error
        try:
            await call.answered
        except BaseException:
            if not self._leave(call) and call in self.abandoned:
                self.warn(attempt)
            raise
        if call.error is not None:
            raise call.error
        return call.value

    def _leave(self, call: _ThreadCall) -> bool:
        """Do not wait for it any longer. Whether it will never begin."""
        with self._lock:
            if not call.begun:
                call.abandoned_early = True
                return True
            if not call.over:
                self.abandoned.add(call)
            return False

    # --- in a thread

    def _serve(self, call: _ThreadCall) -> None:
        """Do the work, and see to it that the event loop hears of it."""
        with self._lock:
            if call.abandoned_early:
                return
            call.begun = True
        try:
            call.value = call.function()
        except BaseException as error:  # whatever a function raises is its job's failure
            call.error = error
        with self._lock:
            call.over = True
            self.abandoned.discard(call)
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            call.tell(call)

    def _tell(self, call: _ThreadCall) -> None:
        self._ended.append(call)
        # Waking the loop is dear; whoever ends before it has looked is found by the same look.
        if not self._wakeup_pending:
            self._wakeup_pending = True
            call.answered.get_loop().call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._wakeup_pending = False  # first: what ends from now on rings again
        ended = self._ended
        while ended:
            _answer(ended.popleft().answered)


class _ThreadCall:
    """One call. Errors travel as values: a future refuses some, and SystemExit would end more than
    a job.
    """

    __slots__ = (
        "abandoned_early",
        "answered",
        "begun",
        "error",
        "function",
        "over",
        "tell",
        "value",
    )

    def __init__(
        self,
        function: Callable[[], Any],
        answered: asyncio.Future[None],
        tell: Callable[[_ThreadCall], None],
    ) -> None:
        self.function = function
        self.answered = answered
        self.tell = tell
        self.value: Any = None
        self.error: BaseException | None = None
        self.begun = False
        self.abandoned_early = False
        self.over = False


def _tell_its_loop(call: _ThreadCall) -> None:
    call.answered.get_loop().call_soon_threadsafe(_answer, call.answered)


def _answer(answered: asyncio.Future[None]) -> None:
    if not answered.done():
        answered.set_result(None)
