"""Jobs whose task this worker does not know: they are left for workers that know it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.model.job import ClaimedJob
from headrace.task import Task

log = logging.getLogger("headrace.worker")

# This many names are logged, once each. Producers choose the names, so their number has no bound.
MOST_LOGGED = 1_000
MOST_NAMED = 5


class UnknownTasks:
    """Finds claimed jobs that this worker cannot run."""

    def __init__(
        self,
        *,
        tasks: Mapping[str, Task[..., Any]],
        built_in: Callable[[str], Task[..., Any] | None],
    ) -> None:
        self.tasks = tasks
        self._built_in = built_in
        self._logged: set[str] = set()

    def among(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Return the jobs whose task is neither registered nor built in. Logs each task once."""
        tasks = self.tasks
        unknown = [
            job for job in jobs if job.task not in tasks and self._built_in(job.task) is None
        ]
        for job in unknown:
            self._log(job)
        return unknown

    def _log(self, job: ClaimedJob) -> None:
        if job.task in self._logged or len(self._logged) >= MOST_LOGGED:
            return
        self._logged.add(job.task)
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
