"""What an orchestrator needs from the App that it works for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.artifacts import ArtifactStore
from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine
from headrace.loop import Loop
from headrace.task import Task
from headrace.telemetry import Telemetry


class Host(Protocol):
    """An App, as the orchestrator knows it."""

    settings: Settings
    clock: Clock
    tasks: dict[str, Task[..., Any]]
    artifacts: ArtifactStore

    @property
    def engine(self) -> Engine:
        """Where the jobs live."""

    async def open(self) -> None:
        """Connect. Doing it again is fine."""

    def built_in(self, name: str) -> Task[..., Any] | None:
        """A task that every worker has, whatever its App."""

    def task_names(self) -> tuple[str, ...]:
        """The names of all tasks that a worker of this App knows, those that every worker has
        included.
        """

    def upkeep(self, *, telemetry: Telemetry, worker: Callable[[], str]) -> Sequence[Loop]:
        """The loops that keep the store moving, and those that tell of the worker of this name."""
