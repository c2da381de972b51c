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

    def split(self, jobs: Sequence[ClaimedJob]) -> tuple[list[ClaimedJob], list[ClaimedJob]]:
        """Return the jobs that can be run, and those whose task is neither registered nor built in.
        Logs each task once.
        """
        known: list[ClaimedJob] = []
        unknown: list[ClaimedJob] = []
        for job in jobs:
            if job.task in self.tasks or self._built_in(job.task) is not None:
                known.append(job)
            else:
                unknown.append(job)
                self._log(job)
        return known, unknown

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
