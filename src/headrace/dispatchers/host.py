"""What dispatchers need from the App that they work for."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine
from headrace.task import Task


class Host(Protocol):
    """An App, as dispatchers know it."""

    settings: Settings
    clock: Clock
    tasks: dict[str, Task[..., Any]]

    @property
    def engine(self) -> Engine:
        """Where the jobs live."""

    async def open(self) -> None:
        """Connect. Doing it again is fine."""

    def find_task(self, name: str) -> Task[..., Any]:
        """The task of this name, or an error that names the nearest ones."""
