"""Who keeps the durable steps of an attempt: the worker, or, asked by a child process, the same."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from headrace.model.durable.children import EndedChild
from headrace.model.job import NewJob
from headrace.orchestrator.durable.children import Children
from headrace.orchestrator.durable.stage_call import StageRetry
from headrace.orchestrator.durable.stages import Stages
from headrace.orchestrator.durable.waiting import SleepAndWait

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext


class StepStore(ABC):
    """The durable verbs, each with the name (`place`) that its step is kept by."""

    @abstractmethod
    async def stage(
        self,
        step_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
    ) -> Any:
        """Run a stage, or answer what was kept of it."""

    @abstractmethod
    async def sleep(self, step_name: str, seconds: float | None, until: float | None) -> None:
        """Sleep for so long, or until then."""

    @abstractmethod
    async def wait(self, step_name: str, event: str, timeout: float | None) -> bytes:
        """Wait for an event and answer its body."""

    @abstractmethod
    async def spawn(self, step_name: str, jobs: list[NewJob]) -> list[str]:
        """Make children."""

    @abstractmethod
    async def gather(self, ids: list[str]) -> list[EndedChild]:
        """Wait until these children have ended."""


class WorkerStepStore(StepStore):
    """The worker's own. All but the function of a stage runs on the worker's loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._stages = Stages(context)
        self._sleep_and_wait = SleepAndWait(context)
        self._children = Children(context)

    async def stage(
        self,
        step_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
    ) -> Any:
        """Run a stage, or answer what was kept of it."""
        return await self._stages.run(step_name, call, done=done, stage_retry=stage_retry)

    async def sleep(self, step_name: str, seconds: float | None, until: float | None) -> None:
        """Sleep for so long, or until then."""
        await self._context.on_worker_loop(self._sleep_and_wait.sleep(step_name, seconds, until))

    async def wait(self, step_name: str, event: str, timeout: float | None) -> bytes:
        """Wait for an event and answer its body."""
        return await self._context.on_worker_loop(
            self._sleep_and_wait.wait(step_name, event, timeout)
        )

    async def spawn(self, step_name: str, jobs: list[NewJob]) -> list[str]:
        """Make children."""
        return await self._context.on_worker_loop(self._children.spawn(step_name, jobs))

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        """Wait until these children have ended."""
        return await self._context.on_worker_loop(self._children.gather(ids))
