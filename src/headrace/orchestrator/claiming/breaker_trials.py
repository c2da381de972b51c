"""The job that a worker tries while a breaker is open, and what it does with the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from headrace.breakers.store import Key, OpenBreaker
from headrace.model.job import ClaimedJob


class Trial(msgspec.Struct):
    """The job that is tried here. `proof` True: it completed; False: it failed."""

    job_id: str
    token: int
    breaker: OpenBreaker
    pause: float
    over: bool = False
    proof: bool | None = None


class ClaimedJobs(Protocol):
    """Starts and releases claimed jobs: the dispatcher."""

    def take_in(self, jobs: Sequence[ClaimedJob]) -> None:
        """Start jobs that were set aside, as far as they are still ours."""

    def give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """Release jobs that were set aside."""

    def give_back_unstarted(self) -> None:
        """Release all that have not started."""


def by_key(jobs: Iterable[ClaimedJob]) -> dict[Key, list[ClaimedJob]]:
    """Return jobs by queue and lane."""
    found: dict[Key, list[ClaimedJob]] = {}
    for job in jobs:
        found.setdefault((job.queue, job.lane or ""), []).append(job)
    return found
