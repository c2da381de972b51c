"""What a handler is given: the job it works for and what it may do to it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from headrace.model.artifact import Artifacts

R = TypeVar("R")


class Context(ABC):
    """One attempt at one job, as its handler sees it.

    `token` grows with every attempt: pass it along with side effects to fence off older attempts.
    `key` is the same over all attempts: use it to make side effects idempotent.
    """

    job_id: str
    task: str
    queue: str
    attempt: int
    max_attempts: int
    token: int
    key: str
    lane: str | None
    log: logging.LoggerAdapter[logging.Logger]
    artifacts: Artifacts

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether this attempt should stop: cancelled, out of time, or its lease is lost."""

    @abstractmethod
    def progress(self, percent: float, message: str | None = None) -> None:
        """Tell how far the job is, 0 to 100. Cheap: written in batches, the latest counts."""

    @overload
    async def stage(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> R: ...

    @overload
    async def stage(
        self,
        name: str,
        function: Callable[..., R],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> R: ...

    @abstractmethod
    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a named step once: its result is kept with the job, and later attempts get it
        without running it again. While it runs the job shows the stage `name`, then `done`.
        """
