"""The jobs that an attempt wants to be stored together with its outcome."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.errors import LeaseLost, PayloadTooLarge
from headrace.model.durable.followers import is_followed
from headrace.model.job import NewJob
from headrace.model.outcome import Outcome

if TYPE_CHECKING:
    from headrace.orchestrator.running.attempt import Attempt

# They are sent together with outcomes of other jobs: one attempt must not fill a transaction.
MOST_FOLLOWERS = 1_000
FOLLOW_BYTES = 4 * 1_048_576
# What a job takes beside its arguments and its meta.
JOB_BYTES = 512

_making = threading.Lock()


class Followers:
    """Collects jobs, from any thread, until the attempt is over."""

    __slots__ = ("_guard", "_jobs", "_over", "_size")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._jobs: list[tuple[str, NewJob]] = []
        self._size = 0
        self._over = False

    @classmethod
    def of(cls, attempt: Attempt) -> Followers:
        """Return those of an attempt. They are made when the first is asked for."""
        with _making:
            if attempt.followers is None:
                attempt.followers = cls()
            found = attempt.followers
        # Whoever ends the attempt sets `over` first and reads `followers` then.
        if attempt.over:
            raise _ended(attempt)
        return found

    def add(self, attempt: Attempt, jobs: Sequence[NewJob], on: str, payload_limit: int) -> None:
        """Take all of these jobs, or none. Raises `LeaseLost` if the attempt is over."""
        limit = max(FOLLOW_BYTES, payload_limit + JOB_BYTES)
        with self._guard:
            if self._over:
                raise _ended(attempt)
            count = len(self._jobs) + len(jobs)
            size = self._size + sum(map(size_of, jobs))
            if count > MOST_FOLLOWERS:
                raise PayloadTooLarge(
                    f"job {attempt.job.id} wants {count:,} jobs to follow it, the limit is "
                    f"{MOST_FOLLOWERS:,}; let one follow that spawns the others"
                )
            if size > limit:
                raise PayloadTooLarge(
                    f"the jobs that are to follow job {attempt.job.id} take {size:,} bytes "
                    f"together, the limit is {limit:,}; keep large data as an artifact and pass "
                    "a reference"
                )
            self._jobs += [(on, job) for job in jobs]
            self._size = size

    def close(self, outcome: Outcome | None) -> tuple[NewJob, ...]:
        """The attempt is over: take no more, and return the jobs that follow from its outcome."""
        with self._guard:
            self._over = True
        if outcome is None:
            return ()
        found = {job.id: job for on, job in self._jobs if is_followed(outcome, on)}
        return tuple(found.values())


def size_of(job: NewJob) -> int:
    """Return about how many bytes a job takes in an exchange."""
    return len(job.args) + len(job.meta or b"") + JOB_BYTES


def _ended(attempt: Attempt) -> LeaseLost:
    job = attempt.job
    return LeaseLost(f"attempt {job.attempt} of job {job.id} has ended: nothing can follow it now")
