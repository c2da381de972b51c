"""Many more failures than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from headrace.engine.base import Viewing
from headrace.model.job import JobFilter
from headrace.model.names import WORKFLOW
from headrace.model.status import Status
from headrace.model.views import Finding, FindingTarget
from headrace.monitor.words import plural

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "failures"
RECENT = timedelta(minutes=5)
WINDOW = timedelta(hours=1)
# Fewer are no spike, whatever was before; and it has to be so many times the rate of before.
FEWEST = 20
TIMES = 4.0
MOST = 1_000
LOOK = 5_000


class FailureCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that failed for good in the last minutes, and in the rest of the hour. `most` is the
    task and the type of the error that most of the recent ones share. Not `complete`: there are
    more than were looked at.
    """

    recent: int = 0
    before: int = 0
    complete: bool = True
    first: datetime | None = None
    most: tuple[str, str] | None = None


async def failure_counts(engine: Viewing, now: datetime, queues: Collection[str]) -> FailureCounts:
    """Count failures of the last hour among the newest jobs that failed; with `queues` without
    runs of workflows, whose steps may be in others.
    """
    wanted = JobFilter(
        statuses=(Status.FAILED, Status.TIMEOUT),
        finished_after=now - WINDOW,
        queues=tuple(sorted(queues)),
    )
    page = await engine.list_jobs(wanted, limit=MOST, brief=True, look=LOOK)
    jobs = [job for job in page.jobs if not queues or job.task != WORKFLOW]
    ended = [(job.completed_at, job) for job in jobs if job.completed_at is not None]
    recent = [(at, job) for at, job in ended if at > now - RECENT]
    kinds = Counter((job.task, job.error_type or "") for _, job in recent)
    return FailureCounts(
        recent=len(recent),
        before=len(ended) - len(recent),
        complete=page.cursor is None,
        first=min((at for at, _ in recent), default=None),
        most=kinds.most_common(1)[0][0] if kinds else None,
    )


def findings(facts: Facts) -> Iterator[Finding]:
    """Return the spike, if there is one."""
    counts = facts.failures
    usual = counts.before * (RECENT / (WINDOW - RECENT))
    if counts.recent < FEWEST or counts.recent < TIMES * usual or counts.most is None:
        return
    task, error = counts.most
    number = plural(counts.recent, "job") if counts.complete else f"{counts.recent:,} jobs or more"
    yield Finding(
        "error",
        SUBJECT,
        f"{number} failed in the last 5 minutes, after {counts.before:,} in the 55 minutes before; "
        f"most of them {error or 'without an error'} in task {task!r}",
        f"See why: headrace errors --task {task}; when it is mended: "
        f"headrace jobs retry --task {task}",
        kind="failures.spike",
        name=task,
        since=counts.first,
        action="retry",
        target=FindingTarget(
            "errors", {"task": task, "error_type": error} if error else {"task": task}
        ),
    )
