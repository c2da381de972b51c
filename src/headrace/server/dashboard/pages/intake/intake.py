"""Intake: dispatchers, messages that made no job, and destinations of published events."""

from __future__ import annotations

import shlex

import msgspec

from headrace.api_types.publishing import DestinationView
from headrace.api_types.responses import DispatcherView
from headrace.app import EVENTS
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.monitor.findings.dispatchers import LATE_SECONDS, MUCH_LAG
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.pages.intake.dead_letters import LetterFinder
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import NONE
from headrace.server.http.problems import invalid

ROWS = 50
MOST_GROUPS = 50
MOST_DESTINATIONS = 200
# Deliveries that failed are counted up to here.
COUNTED = 1_000
# Of a message and of a reason, so much is shown.
LONGEST_RAW = 16_384
LONGEST_CURSOR = 4_096


@page("/intake", title="Intake", key="i", query=("name", "group", "cursor"))
async def intake(visit: Visit) -> Shown:
    """Show where jobs come from, and what made none."""
    visit.caller.check_unrestricted("dispatchers and dead letters")
    snapshot = await visit.service.snapshots.get()
    dispatchers = msgspec.convert(list(snapshot.dispatchers), list[DispatcherView])
    name, group = visit.query.get("name") or None, visit.query.get("group") or None
    finder = visit.service.part(LetterFinder)
    cursor = given_cursor(visit.query.get("cursor", ""))
    groups = await finder.groups()
    letters = await finder.page(group, cursor=cursor, limit=ROWS)
    chosen = next((each for each in groups.groups if each.id == group), None)
    destinations = await visit.app.destinations()
    failed = JobFilter(tasks=(EVENTS[1],), statuses=(Status.FAILED, Status.TIMEOUT))
    return Shown(
        "intake/intake.html",
        dispatchers=[each for each in dispatchers if name in (None, each.name)],
        name=name,
        state_of=dispatcher_state,
        groups=groups,
        most_groups=MOST_GROUPS,
        group=group,
        chosen=chosen,
        cursor=cursor,
        letters=letters.letters,
        next=None if letters.cursor is None else visit.again(cursor=letters.cursor),
        destinations=destinations[:MOST_DESTINATIONS],
        failed=await visit.app.engine.count_jobs(failed, look=COUNTED) if destinations else None,
        deliver=EVENTS[1],
        target_of=destination_target,
        quote=shlex.quote,
    )


@page("/intake/letters/{letter_id:path}", title="Message that made no job")
async def letter(visit: Visit) -> Shown:
    """Show a message with the reason why it made no job."""
    visit.caller.check_unrestricted("dead letters")
    found = await visit.app.dead_letter(visit.params["letter_id"])
    raw = visit.service.answers.message(found.raw)
    return Shown(
        "intake/letter.html",
        letter=found,
        reason=visit.service.answers.reason(found.reason, found.raw),
        text=raw[:LONGEST_RAW].decode("utf-8", "backslashreplace"),
        shown=min(len(raw), LONGEST_RAW),
        size=len(raw),
        line=f"headrace dead-letters show {shlex.quote(found.id)}",
        quoted=shlex.quote(found.id),
    )


def given_cursor(text: str) -> str:
    """Return where a page of letters begins."""
    if len(text) > LONGEST_CURSOR:
        raise invalid("cursor is not one of ours; copy it whole", field="cursor")
    return text


def dispatcher_state(each: DispatcherView) -> tuple[str, str]:
    """Return the state of a dispatcher as a badge and in words."""
    if each.silent:
        return "lost", "silent"
    if not each.healthy:
        return "unhealthy", "not well"
    if (each.lag or 0) >= MUCH_LAG or (each.late_seconds or 0) >= LATE_SECONDS:
        return "behind", "behind"
    return "healthy", "well"


def destination_target(each: DestinationView) -> str:
    """Return where a destination leads; its options have no secrets."""
    names = ("url", "topic", "exchange", "subject", "queue", "queue_url", "stream")
    return next((str(each.options[name]) for name in names if each.options.get(name)), NONE)
