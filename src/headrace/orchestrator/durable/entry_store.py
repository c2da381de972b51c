"""The interface for storing entries: stages, sleeps, waits, children, followers.

It is implemented in the worker and, as a proxy, in child processes.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from headrace.model.durable.children import EndedChild
from headrace.model.durable.transient_stages import Transient
from headrace.model.job import NewJob
from headrace.orchestrator.durable.children import ChildJobs
from headrace.orchestrator.durable.stage_call import StageRetry
from headrace.orchestrator.durable.stages import Stages
from headrace.orchestrator.durable.waiting import SleepAndWait

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext


class EntryStore(ABC):
    """Stores entries. Each call has the name that its entry is stored by."""

    @abstractmethod
    async def stage(
        self,
        entry_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
        transient: Transient = None,
    ) -> Any:
        """Run a stage, or return its recorded result. That of a transient one is not recorded; it
        is `GONE` if one of the stages in `transient` is.
        """

    @abstractmethod
    async def sleep(self, entry_name: str, seconds: float | None, until: float | None) -> None:
        """Sleep for `seconds`, or until a time in seconds since the epoch."""

    @abstractmethod
    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        """Wait for a signal and return its body."""

    @abstractmethod
    async def spawn(self, entry_name: str, jobs: list[NewJob]) -> list[str]:
        """Create child jobs and return their ids."""

    @abstractmethod
    async def gather(self, ids: list[str]) -> list[EndedChild]:
        """Wait until these children have ended."""

    @abstractmethod
    def follow(self, jobs: list[NewJob], on: str) -> None:
        """Have jobs stored with the outcome of the attempt. Does not wait for the engine."""

    @abstractmethod
    def publish(self, event_type: str, body: bytes, key: str | None, on: str) -> str:
        """Have an event published with the outcome, and return its id. The same way."""


class WorkerEntryStore(EntryStore):
    """Records in the engine. All but the function of a stage runs on the worker's event loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._stages = Stages(context)
        self._sleep_and_wait = SleepAndWait(context)
        self._children = ChildJobs(context)

    async def stage(
        self,
        entry_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
        transient: Transient = None,
    ) -> Any:
        return await self._stages.run(
            entry_name, call, done=done, stage_retry=stage_retry, transient=transient
        )

    async def sleep(self, entry_name: str, seconds: float | None, until: float | None) -> None:
        await self._context.on_worker_loop(self._sleep_and_wait.sleep(entry_name, seconds, until))

    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        return await self._context.on_worker_loop(
            self._sleep_and_wait.wait(entry_name, event, timeout)
        )

    async def spawn(self, entry_name: str, jobs: list[NewJob]) -> list[str]:
        return await self._context.on_worker_loop(self._children.spawn(entry_name, jobs))

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        return await self._context.on_worker_loop(self._children.gather(ids))

    def follow(self, jobs: list[NewJob], on: str) -> None:
        self._context.follow(jobs, on)

    def publish(self, event_type: str, body: bytes, key: str | None, on: str) -> str:
        job = self._context.event_job(event_type, body, key)
        self._context.follow([job], on, f"publish {event_type}")
        return job.id
