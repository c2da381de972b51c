"""What a handler of chunks is given: several jobs at once, each with an outcome of its own."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from headrace.model.durable.followers import FollowOn
from headrace.model.job import NewJob

A_co = TypeVar("A_co", covariant=True)

# What a Context has and a job of a chunk has not.
_NOT_HERE = ("stage", "sleep", "sleep_until", "wait", "spawn", "gather", "artifacts")


def _missing(asked: object, name: str) -> NoReturn:
    text = f"{type(asked).__name__} has no {name!r}"
    if name in _NOT_HERE:
        text = (
            f"{name!r} belongs to a job that runs alone, and there is none in a chunk; let a job "
            "of another task follow (job.then), or register this one without chunk="
        )
    raise AttributeError(text)


class ChunkJob(ABC, Generic[A_co]):
    """One attempt at one job of a chunk. `args` are its arguments, as the class that the handler
    names in `Chunk[…]`; all else is as in `Context`.

    Its outcome is what `complete` or `fail` say, and is recorded at once. Without either, it is
    what the handler returns or raises. Inside of `with job:` an error fails this job alone.
    """

    args: A_co
    job_id: str
    queue: str
    attempt: int
    max_attempts: int
    token: int
    key: str
    lane: str | None

    @property
    @abstractmethod
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records name the job."""

    @property
    @abstractmethod
    def meta(self) -> dict[str, Any]:
        """What travels with the job besides its arguments."""

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether this attempt should stop: cancelled, out of time, or its lease is lost. The
        other jobs of the chunk go on.
        """

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether it has an outcome already."""

    @abstractmethod
    def progress(self, percent: float, message: str | None = None) -> None:
        """Tell how far the job is, 0 to 100. Cheap: written in batches, the latest counts."""

    @abstractmethod
    def complete(self, result: Any = None) -> None:
        """End the job with this result. Raises `JobConflict` if it has an outcome already, and
        `LeaseLost` if the call has ended.
        """

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """End the attempt as if a handler of this job alone had raised the error: it is tried again
        by the task's policy. `RetryLater`, `Snooze` and `NotRetryable` mean what they mean when
        they are raised. Raises as `complete` does.
        """

    @abstractmethod
    def then(self, job: NewJob, /, *more: NewJob, on: FollowOn = "completed") -> list[str]:
        """Have jobs stored in the same step as the outcome of this one, and return their ids."""

    @abstractmethod
    def publish(
        self, event_type: str, body: Any, key: str | None = None, *, on: FollowOn = "completed"
    ) -> str:
        """Publish an event together with the outcome of this job, and return its id."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Fail this job alone by an error. What stops the whole call is not one."""
        if not isinstance(error, Exception):
            return False
        if not self.ended:
            self.fail(error)
        return True

    if not TYPE_CHECKING:  # to a type checker nothing else is there

        def __getattr__(self, name: str) -> NoReturn:
            _missing(self, name)


class Chunk(Sequence[ChunkJob[A_co]], Generic[A_co]):
    """The jobs that one call of a handler works on, in the order in which they were claimed.

        @app.task(chunk=50)
        async def store(chunk: headrace.Chunk[Row]) -> None:
            await database.executemany(INSERT, [(job.args.sensor, job.args.value) for job in chunk])

    The handler returns None, or a list with one result for each job, in order. An exception in that
    list fails its job alone; one that is raised counts for every job that has no outcome yet.
    """

    task: str

    @property
    @abstractmethod
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records name the task."""

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether the call should stop: out of time, the worker stops, or every job that has no
        outcome was cancelled.
        """

    if not TYPE_CHECKING:  # to a type checker nothing else is there

        def __getattr__(self, name: str) -> NoReturn:
            _missing(self, name)
