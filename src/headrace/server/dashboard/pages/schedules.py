"""Schedules: when tasks run by the clock, what comes next and what came of the last times."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.api_types.responses import ScheduleRun, ScheduleTimes, ScheduleView
from headrace.errors import InvalidSetting
from headrace.model.names import check_name
from headrace.model.schedules.cron import find_zone, parse_cron
from headrace.model.schedules.schedule import RUNS_KEPT, Schedule
from headrace.monitor.words import schedule_state
from headrace.server.dashboard.charts import dots
from headrace.server.dashboard.findings import links as finding_links
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit

MOST = 25
MOST_SUGGESTED = 200
NEXT = 5
# A dispatcher that is well fires within moments.
# What a form begins with, by the names of the API.
EMPTY: Mapping[str, str] = {
    "name": "",
    "expression": "",
    "tz": "UTC",
    "task": "",
    "params": "{}",
    "missed": "latest",
    "allow_overlap": "yes",
    "enabled": "yes",
}
MISSED = {
    "latest": "make up for the last one",
    "skip": "skip them",
    "all": "make up for every one",
}


@page("/schedules", title="Schedules", key="s", query=("cursor",))
async def schedules(visit: Visit) -> Shown:
    """Show schedules by name, with how their last runs went."""
    visit.caller.check_unrestricted("schedules")
    stored = visit.app.schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.views import schedule_views  # noqa: PLC0415 - an extra

    after = visit.query.get("cursor", "")
    found = await schedule_views(stored, visit.now, after=after, limit=MOST + 1, runs=RUNS_KEPT)
    rows = [
        {"view": each, "state": schedule_state(each), "dots": _dots(visit, each)} for each in found
    ]
    return Shown(
        "schedules/schedules.html",
        schedules=rows[:MOST],
        next=visit.again(cursor=found[MOST - 1].name) if len(found) > MOST else None,
    )


@page("/schedules/{name:path}", title="Schedule")
async def schedule(visit: Visit) -> Shown:
    """Show one: its next five times, its last runs, and what it has missed."""
    visit.caller.check_unrestricted("schedules")
    found = await visit.app.get_schedule(check_name("schedule", visit.params["name"]))
    summary = await visit.service.summaries.get()
    findings = [
        each for each in summary.findings if (each.subject, each.name) == ("schedules", found.name)
    ]
    return Shown(
        "schedules/schedule.html",
        title=f"Schedule {found.name}",
        schedule=found,
        state=schedule_state(found),
        params=shown_params(visit, found),
        missed=MISSED[found.missed],
        dots=_dots(visit, found, links=True),
        findings=finding_links.shown(visit, findings),
    )


# -- the form --------------------------------------------------------------------------------------


@page("/schedule-form", title="New schedule", scope="admin", query=("name",))
async def schedule_form(visit: Visit) -> Shown:
    """Show the form of a new schedule, or of one that is to be changed."""
    visit.caller.check_unrestricted("schedules")
    name = visit.query.get("name")
    if not name:
        return form(visit, EMPTY, {}, exists=False)
    found = await visit.app.get_schedule(check_name("schedule", name))
    typed = {
        **{field: getattr(found, field) for field in ("name", "expression", "tz", "task")},
        "params": shown_params(visit, found),
        "missed": found.missed,
        "allow_overlap": "yes" if found.allow_overlap else "no",
        "enabled": "yes" if found.enabled else "no",
    }
    return form(visit, typed, {}, exists=True)


@page("/schedule-preview", title="Next times", query=("expression", "tz"))
async def schedule_preview(visit: Visit) -> Shown:
    """Show what an expression means, and when it fires next."""
    typed = {name: visit.query.get(name, EMPTY[name]) for name in ("expression", "tz")}
    return Shown("schedules/schedule_preview.html", typed=typed, **_preview(visit, typed))


def form(
    visit: Visit, typed: Mapping[str, str], errors: Mapping[str, str], *, exists: bool
) -> Shown:
    """Return the form with what was typed, and what is wrong with it by field."""
    return Shown(
        "schedules/schedule_form.html",
        title=f"Change schedule {typed['name']}" if exists else "New schedule",
        status=422 if errors else 200,
        typed=typed,
        errors=errors,
        exists=exists,
        tasks=sorted(visit.app.tasks)[:MOST_SUGGESTED],
        zones=_zones(),
        choices=MISSED,
        **_preview(visit, typed),
    )


@functools.cache
def _zones() -> list[str]:
    return sorted(zoneinfo.available_timezones())


def _preview(visit: Visit, typed: Mapping[str, str]) -> dict[str, Any]:
    if not typed["expression"].strip():
        return {"preview": None, "wrong": None}
    _ = visit.app.schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.views import schedule_times  # noqa: PLC0415 - an extra

    tried = Schedule(
        name="tried", task="none", expression=typed["expression"], tz=typed["tz"].strip() or "UTC"
    )
    try:
        parse_cron(tried.expression).check_interval(visit.app.schedules.least_interval)
        find_zone(tried.tz)
        found: ScheduleTimes = schedule_times(tried, visit.now, NEXT)
    except InvalidSetting as error:
        return {"preview": None, "wrong": str(error)}
    return {"preview": found, "wrong": None}


# -- words -----------------------------------------------------------------------------------------


def shown_params(visit: Visit, found: ScheduleView) -> str:
    """Return its arguments as JSON without the values of hidden fields."""
    shown = visit.redactor.value(found.params)
    return msgspec.json.format(msgspec.json.encode(shown)).decode()


def _dots(visit: Visit, found: ScheduleView, *, links: bool = False) -> Any:
    runs = found.last_runs[::-1]
    if not runs:
        return ""
    return dots(
        f"Last runs of {found.name}",
        [(each.status, _run_words(each)) for each in runs],
        [visit.url("/jobs", each.job_id) for each in runs] if links else None,
    )


def _run_words(run: ScheduleRun) -> str:
    when = "triggered by hand" if run.time is None else f"for {run.time:%Y-%m-%d %H:%M} UTC"
    return f"{run.status}, {when}"
