"""Jobs whose task this worker does not know: they are left for workers that know it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.model.job import ClaimedJob
from headrace.task import Task

log = logging.getLogger("headrace.worker")

# So many names are told once each. Names are the world's: their number has no bound.
MOST_TOLD = 1_000
MOST_NAMED = 5


class UnknownTasks:
    """Tells claimed jobs that this worker can run from those that it cannot."""

    def __init__(
        self,
        *,
        tasks: Mapping[str, Task[..., Any]],
        built_in: Callable[[str], Task[..., Any] | None],
    ) -> None:
        self.tasks = tasks
        self._built_in = built_in
        self._told: set[str] = set()

    def among(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Those of these jobs whose task is unknown here. Each task is logged once."""
        tasks = self.tasks
        unknown = [job for job in jobs if job.task not in tasks]
        if unknown:
            unknown = [job for job in unknown if self._built_in(job.task) is None]
        for job in unknown:
            self._tell(job)
        return unknown

    def _tell(self, job: ClaimedJob) -> None:
        if job.task in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told.add(job.task)
        names = [f'"{name}"' for name in sorted(self.tasks)]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        log.warning(
            'Task "%s" of job %s in queue "%s" is not registered here; its jobs are left for '
            "workers that know it. Registered: %s%s. Load its module with --app, or let this "
            "worker serve other queues with --queues.",
            job.task,
            job.id,
            job.queue,
            ", ".join(names[:MOST_NAMED]) or "none",
            more,
        )
