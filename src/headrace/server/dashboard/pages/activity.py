"""Activity: who changed what, and when."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.api_types.responses import AuditEntry
from headrace.server.auth.audit_pages import AuditFilter
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.filters import parse_time

ROWS = 50
FILTERS = ("who", "action", "target", "since", "until")
LONGEST = 120
MOST_DETAILS = 6
# What was done, in words; {} is the target. "n" is how many, in an entry that stands for several.
WORDS = {
    "job.cancel": "cancelled job {}",
    "job.retry": "ran job {} again",
    "job.copy": "made a copy of a job: {}",
    "job.signal": "sent an event to job {}",
    "jobs.create": "enqueued {n} of task {}",
    "jobs.cancel": "cancelled {}",
    "jobs.retry": "ran {} again",
    "bulk.stop": "stopped bulk action {}",
    "bulk.resume": "went on with bulk action {}",
    "queue.pause": "paused queue {}",
    "queue.resume": "resumed queue {}",
    "rate.set": "set the rate of {}",
    "rate.remove": "removed the rate of {}",
    "rate.hold": "held {}",
    "rate.release": "ended the hold of {}",
    "breaker.open": "opened the breaker of {}",
    "breaker.close": "closed the breaker of {}",
    "schedule.put": "set schedule {}",
    "schedule.enable": "enabled schedule {}",
    "schedule.disable": "disabled schedule {}",
    "schedule.trigger": "ran schedule {} now",
    "schedule.remove": "removed schedule {}",
    "dead-letter.replay": "replayed message {}",
    "dead-letter.remove": "removed message {}",
    "dead-letters.replay": "replayed {}",
    "dead-letters.remove": "removed {}",
    "workflow.execute": "ran workflow {}",
    "workflow.retry": "began run {} again",
    "artifact.keep": "kept file {}",
    "artifact.release": "released file {}",
    "destination.put": "set destination {}",
    "destination.enable": "enabled destination {}",
    "destination.disable": "disabled destination {}",
    "destination.rotate": "rotated the secret of destination {}",
    "destination.test": "sent a test to destination {}",
    "destination.remove": "removed destination {}",
    "alert-rule.put": "set alert rule {}",
    "alert-rule.remove": "removed alert rule {}",
    "alert.silence": "silenced alerts of rule {}",
    "alert.unsilence": "ended the silence of rule {}",
    "alert.test": "sent a test alert to {}",
    "key.create": "made key {}",
    "key.revoke": "revoked key {}",
}
# The page of a target, by the noun of the action.
PAGES = {
    "job": "/jobs",
    "bulk": "/bulk",
    "queue": "/queues",
    "schedule": "/schedules",
    "workflow": "/workflows",
}
# These have no page of their own.
LISTS = {
    "rate": "/lanes",
    "breaker": "/lanes",
    "alert": "/alerts",
    "alert-rule": "/alerts",
    "key": "/keys",
    "destination": "/intake",
    "dead-letter": "/intake",
    "dead-letters": "/intake",
}


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as it is shown: words before and after the target, which may be a link."""

    entry: AuditEntry
    before: str
    after: str
    link: str | None
    details: list[tuple[str, str, str | None]]


@page("/activity", title="Activity", key="a", scope="admin", query=(*FILTERS, "cursor"), personal=True)  # fmt: skip  # noqa: E501
async def activity(visit: Visit) -> Shown:
    """Show changes, the newest first."""
    visit.caller.check_unrestricted("changes")
    given = {name: visit.query.get(name, "").strip() or None for name in FILTERS}
    wanted = AuditFilter(
        who=given["who"],
        action=given["action"],
        target=given["target"],
        since=parse_time("since", given["since"]),
        until=parse_time("until", given["until"]),
    )
    cursor = visit.query.get("cursor") or None
    found = await visit.service.audit.read(wanted, cursor=cursor, limit=ROWS)
    mine = visit.caller.key_id or visit.caller.name
    return Shown(
        "system/activity.html",
        entries=[shown(visit, entry) for entry in found.entries],
        next=None if found.cursor is None else visit.again(cursor=found.cursor),
        given=given,
        chips=[
            (name, "you" if (name, value) == ("who", mine) else value, visit.again(**{name: None}))
            for name, value in given.items()
            if value is not None
        ],
        tabs=[
            ("Mine", visit.again(who=mine), given["who"] == mine),
            ("All", visit.again(who=None), given["who"] is None),
        ],
        actions=sorted(WORDS),
    )


def shown(visit: Visit, entry: AuditEntry) -> Activity:
    """Return an entry in words."""
    words = WORDS.get(entry.action, entry.action.replace(".", " ") + " {}")
    jobs = "1 job" if entry.count == 1 else f"{entry.count:,} jobs"
    before, _, after = words.replace("{n}", jobs).partition("{}")
    detail: dict[str, Any] = visit.redactor.value(entry.detail)
    return Activity(
        entry=entry,
        before=before,
        after=after,
        link=link_of(visit, entry),
        details=[
            (name, _short(value), visit.url("/jobs", value) if name == "job_id" else None)
            for name, value in list(detail.items())[:MOST_DETAILS]
        ],
    )


def link_of(visit: Visit, entry: AuditEntry) -> str | None:
    """Return the page of what was changed, where it has one."""
    noun, _, verb = entry.action.partition(".")
    if "bulk_id" in entry.detail:
        return visit.url("/bulk", str(entry.detail["bulk_id"]))
    page = {"jobs.create": "/tasks", "workflow.retry": "/runs"}.get(entry.action, PAGES.get(noun))
    if page is not None and verb != "remove":
        return visit.url(page, entry.target)
    return visit.url(LISTS[noun]) if noun in LISTS else None


def _short(value: object) -> str:
    match value:
        case str():
            text = value
        case list() if all(isinstance(each, str) for each in value):
            text = ", ".join(value)
        case _:
            text = msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
