"""The child processes of a worker: started on demand, reused, and all ended with the worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from headrace.model.job import ClaimedJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.isolation.child.loading_guard import refuse_while_loading
from headrace.orchestrator.isolation.child_process import ChildProcess
from headrace.orchestrator.isolation.error_transport import is_memory_error, rebuild
from headrace.orchestrator.isolation.errors import ChildDied, ChildNotStarted
from headrace.orchestrator.isolation.protocol import Raised, Returned, Target
from headrace.orchestrator.isolation.task_reference import locate, settings_of
from headrace.task import Task

JOBS_PER_CHILD = 1_000
IDLE_SECONDS = 60.0
# How long a process may take until it is ready; or the job's timeout if that is longer.
START_SECONDS = 120.0
SLOW_SECONDS = 10.0

log = logging.getLogger("headrace.orchestrator.isolation")

Key = tuple[Target, int | None, int | None]


class ProcessPool:
    """Runs jobs in up to `size` child processes, one job at a time in each.

    A process is reused for tasks of the same module and memory limits. It is replaced after a
    timeout, a cancel, a crash or a MemoryError, after JOBS_PER_CHILD jobs and after IDLE_SECONDS.
    """

    def __init__(
        self, *, app_path: str | None, size: int, payload_limit: int | None = None
    ) -> None:
        refuse_while_loading()
        self._app_path = app_path
        self._size = size
        self._payload_limit = payload_limit
        self._slots = asyncio.Semaphore(size)
        self._targets: dict[Task[..., Any], Target] = {}
        self._count = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._busy: set[ChildProcess] = set()
        # The one that has been idle longest comes first, over all keys.
        self._idle: dict[ChildProcess, tuple[Key, asyncio.TimerHandle]] = {}
        self._leaving: dict[ChildProcess, asyncio.Task[None]] = {}
        self._closed = False

    async def run(
        self,
        task: Task[..., Any],
        job: ClaimedJob,
        context: DurableContext,
        time_counts: Callable[[bool], None] = lambda counts: None,
    ) -> bytes:
        """Run one job and return its result as JSON, or raise what its handler raised.

        If the caller is cancelled the process is killed, and has ended when this returns.
        `time_counts` is called with False while a process is started, which has a limit of its own,
        and with True when the job's own time begins.
        """
        time_counts(False)
        policy = task.policy
        key = self._target(task), policy.memory_limit, policy.tree_memory_limit
        async with self._slots:
            while True:
                time_counts(False)
                child = await self._take(key)
                first = child.jobs == 0
                try:
                    if first:
                        await self._load(child, task, job, tracing=context.tracing is not None)
                    time_counts(True)
                    end = await child.run(job, context)
                except BaseException as error:
                    await self._discard(child)
                    if isinstance(error, ChildNotStarted) and not first:
                        continue  # it died while it was idle: not the fault of this job
                    raise
                self._release(child, key, end)
                match end:
                    case Returned(result=result):
                        return result
                    case Raised(report=report):
                        raise rebuild(report)

    async def close(self) -> None:
        """End all processes: idle ones exit by themselves, those that run a job are killed."""
        self._closed = True
        for child in list(self._idle):
            self._retire(child)
        for child in list(self._busy):
            self._leave(child, child.kill())
        await self._empty.wait()

    async def _load(
        self, child: ChildProcess, task: Task[..., Any], job: ClaimedJob, *, tracing: bool
    ) -> None:
        if self._closed:
            raise ChildDied("the worker is closing")
        target = self._target(task)
        seconds = max(START_SECONDS, job.timeout or 0.0)
        slow_warning = asyncio.get_running_loop().call_later(SLOW_SECONDS, _warn_slow, task, target)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await child.load(
                    target,
                    memory_limit=task.policy.memory_limit,
                    payload_limit=self._payload_limit,
                    settings=settings_of(task),
                    tracing=tracing,
                )
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ChildNotStarted(
                f'the child process of task "{task.name}" was not ready within {seconds:g} s, and '
                f"the handler has not begun: importing {target.module} takes too long; load what "
                "is slow when it is first used"
            ) from error
        finally:
            slow_warning.cancel()

    def _target(self, task: Task[..., Any]) -> Target:
        target = self._targets.get(task)
        if target is None:
            target = self._targets[task] = locate(task, self._app_path)
        return target

    async def _take(self, key: Key) -> ChildProcess:
        """Return an idle process for this key, or a new one, and mark it busy."""
        for child in reversed(self._idle):
            if self._idle[child][0] == key and child.alive:
                self._idle.pop(child)[1].cancel()
                self._busy.add(child)
                return child
        while self._count >= self._size:
            if not self._leaving:
                self._retire(next(iter(self._idle)))
            await asyncio.wait(self._leaving.values(), return_when=asyncio.FIRST_COMPLETED)
        self._count += 1
        self._empty.clear()
        try:
            child = await ChildProcess.spawn(tree_memory_limit=key[2])
        except BaseException:
            self._subtract()
            raise
        self._busy.add(child)
        return child

    def _release(self, child: ChildProcess, key: Key, end: Returned | Raised) -> None:
        self._busy.discard(child)
        handle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire, child)
        self._idle[child] = key, handle
        # What filled the memory may still be there for the next job.
        full = isinstance(end, Raised) and is_memory_error(end.report)
        if full or child.jobs >= JOBS_PER_CHILD or self._closed:
            self._retire(child)

    async def _discard(self, child: ChildProcess) -> None:
        self._busy.discard(child)
        await asyncio.shield(self._leave(child, child.kill()))

    def _retire(self, child: ChildProcess) -> None:
        """Stop an idle process."""
        _, handle = self._idle.pop(child)
        handle.cancel()
        self._leave(child, child.stop())

    def _leave(self, child: ChildProcess, leaving: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(leaving)
        if child not in self._leaving:
            self._leaving[child] = task
            task.add_done_callback(lambda _: self._left(child))
        return task

    def _left(self, child: ChildProcess) -> None:
        del self._leaving[child]
        self._subtract()

    def _subtract(self) -> None:
        self._count -= 1
        if not self._count:
            self._empty.set()


def _warn_slow(task: Task[..., Any], target: Target) -> None:
    log.warning(
        'The child process of task "%s" is still importing %s after %g s; the job\'s own time has '
        "not begun",
        *(task.name, target.module, SLOW_SECONDS),
    )
