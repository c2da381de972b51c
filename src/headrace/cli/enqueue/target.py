"""What every way to hand in a job from the command line has, and how it answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from headrace.cli.errors import notice
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line, print_text
from headrace.cli.session import Session
from headrace.errors import InvalidArguments
from headrace.model.job import Job
from headrace.model.worker import Worker

T = TypeVar("T")

BATCH = 1_000


class Door(Protocol):
    """A way in for the jobs of one task."""

    @property
    def payload_limit(self) -> int:
        """How many bytes the arguments of a job may have."""

    async def one(self, arguments: dict[str, Any], *, wait: bool, timeout: float | None) -> None:
        """Hand in one job, and wait for its result if asked to."""

    async def copies(self, arguments: dict[str, Any], count: int) -> None:
        """Hand in the same job so many times."""

    async def lines(self, name: str) -> None:
        """Hand in a job for each line of a file."""


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Lists of bounded length."""
    each = iter(items)
    while batch := list(itertools.islice(each, BATCH)):
        yield batch


def tell_stored(session: Session, job: Job, *, created: bool) -> None:
    """Answer with the job."""
    if session.json:
        print_json(job.to_dict() | {"created": created})
    else:
        print_line(job.id)


def tell_known(job: Job) -> None:
    """Say that no job was made."""
    notice(f"note: task {job.task} has a job with key {job.key!r} already: {job.id}")


def tell_waiting(job: Job, workers: Sequence[Worker]) -> None:
    """Say that the answer may take a while, or may never come."""
    notice(f"note: waiting for job {job.id}")
    if not any(
        worker.alive and (not worker.queues or job.queue in worker.queues) for worker in workers
    ):
        notice(f"note: no worker serves queue {job.queue!r}; start one with: headrace worker")


def hint_at_text(error: InvalidArguments) -> None:
    """Say how to force text where a value was read as JSON."""
    if "Expected `str`, got" in str(error):
        error.add_note("""for text that looks like JSON write name='"7"'""")


def print_result(result: Any) -> None:
    """Text as it is, everything else as JSON."""
    if isinstance(result, str):
        print_text(result)
    else:
        print_json(result)


class Tally:
    """How many jobs of many were made, and which were the first and the last."""

    def __init__(self) -> None:
        self._created = 0
        self._existing = 0
        self._first: str | None = None
        self._last: str | None = None

    @property
    def stored(self) -> int:
        """How many have been answered so far."""
        return self._created + self._existing

    def add(self, job_id: str, *, created: bool = True) -> None:
        """Count one."""
        self._created += created
        self._existing += not created
        self._first = self._first or job_id
        self._last = job_id

    def tell(self, session: Session) -> None:
        """Answer with the numbers."""
        if session.json:
            print_json(
                {
                    "stored": self.stored,
                    "created": self._created,
                    "existing": self._existing,
                    "first": self._first,
                    "last": self._last,
                }
            )
        else:
            known = f"; {self._existing:,} were there already, by key" if self._existing else ""
            print_line(f"Enqueued {plural(self._created, 'job')}{known}.")
