"""What a handler is given: the job it works for and what it may do to it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from headrace.model.artifact import Artifacts
from headrace.model.durable.children import FailedChild, OnFailure
from headrace.model.durable.followers import FollowOn
from headrace.model.job import NewJob
from headrace.model.retry import RetryPolicy

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
        /,
        *args: Any,
        key: str | int | None = None,
        done: str | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        transient: bool | str = False,
        **kwargs: Any,
    ) -> R: ...

    @overload
    async def stage(
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        key: str | int | None = None,
        done: str | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        transient: bool | str = False,
        **kwargs: Any,
    ) -> R: ...

    @abstractmethod
    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        key: str | int | None = None,
        done: str | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        transient: bool | str = False,
        **kwargs: Any,
    ) -> Any:
        """Run a named step once: its result is kept with the job, and later attempts get it
        without running it again. While it runs the job shows the stage `name`, then `done`.

        `key` makes a step of a loop: each key is kept for itself. `retries` (or `retry`) and
        `timeout` are for this step alone, within the attempt.

        With `transient` the result is never stored: a later attempt runs the step again. If it is
        the name of a later stage and that is recorded, the step is skipped and `headrace.GONE`
        returned.
        """

    @abstractmethod
    async def sleep(self, seconds: float, *, name: str | None = None) -> None:
        """Go on in so many seconds. Beyond a second the slot is free for others meanwhile, and the
        handler is run again: what it has kept in stages is not repeated.
        """

    @abstractmethod
    async def sleep_until(self, moment: datetime, *, name: str | None = None) -> None:
        """Go on at a moment, which has a time zone."""

    @overload
    async def wait(self, event: str, *, timeout: float | None = None) -> Any: ...

    @overload
    async def wait(self, event: str, *, timeout: float | None = None, type: type[R]) -> R: ...

    @abstractmethod
    async def wait(self, event: str, *, timeout: float | None = None, type: Any = Any) -> Any:
        """Wait, without a slot, until this event is delivered to the job (`app.signal`), and
        return its value. The first of a name counts. Raises `WaitTimedOut` after `timeout` seconds.
        """

    @overload
    async def spawn(self, jobs: NewJob, *, group: str | None = None) -> str: ...

    @overload
    async def spawn(self, jobs: Iterable[NewJob], *, group: str | None = None) -> list[str]: ...

    @abstractmethod
    async def spawn(
        self, jobs: NewJob | Iterable[NewJob], *, group: str | None = None
    ) -> str | list[str]:
        """Make children of this job, exactly once over all attempts, and return their ids. Give
        jobs that `task.job(…)` has made. `group` is the name that they are shown by.
        """

    @overload
    async def gather(
        self,
        jobs: Iterable[NewJob[R]],
        *,
        group: str | None = None,
        on_failure: Literal["fail"] = "fail",
    ) -> list[R]: ...

    @overload
    async def gather(
        self,
        jobs: Iterable[NewJob[R]],
        *,
        group: str | None = None,
        on_failure: Literal["collect"],
    ) -> list[R | FailedChild]: ...

    @overload
    async def gather(
        self, jobs: Iterable[str], *, group: str | None = None, on_failure: OnFailure = "fail"
    ) -> list[Any]: ...

    @abstractmethod
    async def gather(
        self,
        jobs: Iterable[NewJob] | Iterable[str],
        *,
        group: str | None = None,
        on_failure: OnFailure = "fail",
    ) -> list[Any]:
        """Wait, without a slot, until all of these children have ended, and return their results in
        order. Jobs are spawned first; ids are of children that were.

        If some ended without a result, `ChildFailed` is raised, which names them; with
        `on_failure="collect"` the list has a `FailedChild` in their places.
        """

    @abstractmethod
    def publish(
        self, event_type: str, body: Any, key: str | None = None, *, on: FollowOn = "completed"
    ) -> str:
        """Publish an event together with the outcome of this attempt, as by `then`, and return its
        id. The type is declared (`app.event_type`) and the body fits it. Events of one `key` are
        delivered in order.
        """

    @abstractmethod
    def then(self, job: NewJob, /, *more: NewJob, on: FollowOn = "completed") -> list[str]:
        """Have jobs stored in the same step as the outcome of this attempt, and return their ids.
        Give jobs that `task.job(…)` has made.

        They exist if and only if that outcome counted and is of this kind: "completed"; "failed",
        for good, by an error or by its time limit; or "ended", any final status. An attempt that
        is tried again, that was put off or that has lost its lease leaves none of them.
        """
