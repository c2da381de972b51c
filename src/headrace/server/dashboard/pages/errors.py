"""Errors: failures in groups, of which one can be retried."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any

import msgspec

from headrace.api_types.monitoring import ErrorGroup
from headrace.monitor.errors import MOST_FAILURES
from headrace.server.dashboard.charts.over_time import failure_chart, trend
from headrace.server.dashboard.jobs.query import JobQuery
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.pages.front_page import hour_ago
from headrace.server.dashboard.shared_reads import SharedReads
from headrace.server.dashboard.visit import Parameter, Visit
from headrace.server.http.problems import invalid

FILTERS = ("queue", "task", "error_type", "since", "until")
WINDOWS = {"hour": "Last hour", "today": "Today (UTC)"}
FAILED = ("failed", "timeout")
# Times are those at which jobs failed.
WORDS = {"created after": "failed after", "created before": "failed before"}
MOST_SUGGESTED = 200


class FailureQuery(JobQuery):
    """Which failures a page is about."""

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit, FILTERS)
        self.within = visit.query.get("within") or None
        if self.within is not None and self.within not in WINDOWS:
            raise invalid(f"within must be one of {', '.join(WINDOWS)}", field="within")
        made = self.wanted
        self.moving = self.within == "hour" and made.created_after is None
        self.wanted = msgspec.structs.replace(
            made,
            created_after=None,
            created_before=None,
            finished_after=made.created_after or self._beginning(visit.now),
            finished_before=made.created_before,
        )

    def _beginning(self, now: datetime) -> datetime | None:
        match self.within:
            case "hour":
                return hour_ago(now)
            case "today":
                return now.replace(hour=0, minute=0, second=0, microsecond=0)
        return None

    @property
    def kept(self) -> dict[str, Parameter]:
        """Return the filters as this page's own parameters."""
        return {**self.fields, "within": self.within}

    def presets(self) -> list[tuple[str, str, bool]]:
        """Return links to some windows of time."""
        again, timed = self.visit.again, "since" in self.given or "until" in self.given
        links = [
            (word, again(within=name, since=None, until=None), self.within == name and not timed)
            for name, word in WINDOWS.items()
        ]
        whole = again(within=None, since=None, until=None)
        return [*links, ("All", whole, self.within is None and not timed)]

    def chips(self) -> list[tuple[str, str, str]]:
        """Return each filter that is set, with a link to the page without it."""
        return [(WORDS.get(name, name), value, link) for name, value, link in super().chips()]

    def jobs(self, group: ErrorGroup) -> dict[str, Any]:
        """Return the filter of a group's jobs, by the names of the list of jobs."""
        after, before = self.wanted.finished_after, self.wanted.finished_before
        return {
            "status": list(FAILED),
            "queue": self.given.get("queue"),
            "task": group.task,
            "error_type": group.error_type or None,
            "fingerprint": group.fingerprint,
            "finished_since": None if after is None else after.isoformat(),
            "finished_until": None if before is None else before.isoformat(),
        }


@page("/errors", title="Errors", key="e", query=(*FILTERS, "within"))
async def errors(visit: Visit) -> Shown:
    """Show the newest failures in groups, the largest first."""
    query = FailureQuery(visit)
    shared = visit.service.part(SharedReads)
    found = await shared.errors(visit, query.wanted, moving=query.moving)
    snapshot = await visit.service.snapshots.get()
    queues = [each.name for each in snapshot.queues if visit.caller.may_touch(each.name)]
    return Shown(
        "jobs/errors.html",
        query=query,
        found=found,
        groups=[
            (each, trend(each, found, query.wanted.finished_after, visit.now))
            for each in found.groups
        ],
        most=MOST_FAILURES,
        can_pick=can_pick,
        queues=queues[:MOST_SUGGESTED],
        tasks=visit.task_names()[:MOST_SUGGESTED],
    )


@page("/errors/group", title="Error", query=(*FILTERS, "within", "fingerprint"))
async def error_group(visit: Visit) -> Shown:
    """Show one group: when it failed, how, and what can be done with its jobs."""
    query = FailureQuery(visit)
    mark = visit.query.get("fingerprint")
    if mark is None or "task" not in query.given:
        raise invalid("choose a group on the page of errors", field="fingerprint")
    shared = visit.service.part(SharedReads)
    found = await shared.errors(visit, query.wanted, moving=query.moving)
    group = next((each for each in found.groups if each.fingerprint == mark), None)
    sample = None
    if group is not None:
        sample = await shared.sample(group.job_ids[0])
        # It may have been moved to another queue since.
        if sample is not None and not visit.caller.may_touch(sample.queue):
            sample = None
    return Shown(
        "jobs/error_group.html",
        title=(query.given.get("error_type") or ["Error"])[0],
        query=query,
        group=group,
        found=found,
        sample=sample,
        minutes=None
        if group is None
        else failure_chart(group, found, query.wanted.finished_after, visit.now),
        can_pick=group is not None and can_pick(group),
        line="" if group is None else _line(group),
        chips=[each for each in query.chips() if each[0] not in ("task", "error")],
        back=visit.url("/errors", within=query.within),
    )


def can_pick(group: ErrorGroup) -> bool:
    """Return whether the jobs of a group can be found by its fingerprint. They cannot if part of
    the message is hidden: then only what is left of it may be looked for.
    """
    return bool(group.error_type) and not group.hidden


def _line(group: ErrorGroup) -> str:
    line = f"headrace jobs retry --task {group.task} --fingerprint {group.fingerprint}"
    return f"{line} --error-type {shlex.quote(group.error_type)}" if group.error_type else line
