"""The lanes of jobs that were claimed here, to be told when they are settled. Pure.

A job never changes its lane, so whoever settles it can tell the server what to lock. Where that is
not known, the server looks it up; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement

# Jobs that are lost to others are never settled here. When so many pile up, all are forgotten.
LIMIT = 10_000

Columns = tuple[list[str], list[str], list[int]]


class Places:
    """Queue and lane of each such job."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def remember(self, jobs: Iterable[ClaimedJob]) -> None:
        """Jobs have been claimed."""
        laned = {job.id: (job.queue, job.lane) for job in jobs if job.lane is not None}
        if laned:
            if len(self._known) > LIMIT:
                self._known.clear()
            self._known.update(laned)

    def forget(self, settlements: Iterable[Settlement]) -> None:
        """Jobs have been settled."""
        if self._known:
            for each in settlements:
                self._known.pop(each.job_id, None)

    def columns(self, settlements: Iterable[Settlement]) -> Columns:
        """Queues, lanes and how many of the jobs are in each; empty unless all are known."""
        jobs: dict[tuple[str, str], int] = {}
        if self._known:
            for each in settlements:
                place = self._known.get(each.job_id)
                if place is None:
                    return [], [], []
                jobs[place] = jobs.get(place, 0) + 1
        return [queue for queue, _ in jobs], [lane for _, lane in jobs], list(jobs.values())
