"""Add, change, remove, enable and run schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from headrace.api_types.requests import Missed
from headrace.api_types.responses import ScheduleView
from headrace.errors import HeadraceError, UnknownSchedule
from headrace.model.names import check_name
from headrace.model.schedules.cron import find_zone, parse_cron
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.page import Shown
from headrace.server.dashboard.pages.schedules import EMPTY, MISSED, form
from headrace.task.redact import HIDDEN


@action("/schedule-form", scope="admin")
async def put(act: Act) -> Done | Shown:
    """Add a schedule, or change one; show the form again with what is wrong."""
    act.caller.check_unrestricted("schedules")
    typed = {name: act.form.get(name, "") for name in EMPTY}
    name, exists = typed["name"].strip(), act.form.get("exists") == "yes"
    if "preview" in act.form:
        return form(act, typed, {}, exists=exists)
    before = await _stored(act, name)
    params, errors = _checked(act, typed, before)
    if not exists and before is not None:
        errors["name"] = f'a schedule "{name}" exists already; change it, or choose another name'
    if not errors:
        try:
            await act.app.put_schedule(
                name,
                typed["expression"],
                typed["task"].strip(),
                tz=typed["tz"].strip() or "UTC",
                params=params,
                allow_overlap=typed["allow_overlap"] == "yes",
                enabled=typed["enabled"] == "yes",
                missed=cast("Missed", typed["missed"]),
                # Somebody else may have added one of this name since.
                replace=exists,
                source="api",
            )
        except HeadraceError as error:
            # All else was checked: what is left are the arguments of the task.
            errors["params"] = str(error)
    if errors:
        return form(act, typed, errors, exists=exists)
    await act.changed("schedule.put", name, expression=typed["expression"])
    done = "changed" if exists else "added"
    return Done(f"Schedule {name} is {done}.", to=act.url("/schedules", name))


@action("/schedules/{name}/remove", scope="admin")
async def remove(act: Act) -> Done:
    """Remove a schedule; its jobs stay."""
    name = _name(act)
    await act.app.remove_schedule(name)
    await act.changed("schedule.remove", name)
    return Done(f"Schedule {name} is removed. Jobs that it made stay.", to=act.url("/schedules"))


@action("/schedules/{name}/enable", scope="admin")
async def enable(act: Act) -> Done:
    """Let a schedule fire again."""
    name = _name(act)
    await act.app.enable_schedule(name, True)
    await act.changed("schedule.enable", name)
    return Done(f"Schedule {name} is enabled. It fires from its next time on.")


@action("/schedules/{name}/disable", scope="admin")
async def disable(act: Act) -> Done:
    """Let a schedule fire no more."""
    name = _name(act)
    await act.app.enable_schedule(name, False)
    await act.changed("schedule.disable", name)
    return Done(f"Schedule {name} is disabled. Times that pass meanwhile are skipped.")


@action("/schedules/{name}/trigger", scope="admin")
async def trigger(act: Act) -> Done:
    """Make a job of a schedule now."""
    name = _name(act)
    force = act.form.get("force") == "yes"
    job = await act.app.trigger_schedule(name, source="api", force=force)
    await act.changed("schedule.trigger", name, job_id=job.id)
    return Done(f"Job {job.id} of schedule {name} is enqueued.")


def _name(act: Act) -> str:
    act.caller.check_unrestricted("schedules")
    return check_name("schedule", act.params["name"])


async def _stored(act: Act, name: str) -> ScheduleView | None:
    try:
        return await act.app.get_schedule(check_name("schedule", name))
    except UnknownSchedule:
        return None
    except HeadraceError:
        return None  # told of below, by its field


def _checked(
    act: Act, typed: dict[str, str], before: ScheduleView | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments, and what is wrong by field."""
    errors: dict[str, str] = {}

    def check(field: str, call: Callable[[], object]) -> None:
        try:
            call()
        except HeadraceError as error:
            errors[field] = str(error)

    schedules = act.app.schedules
    check("name", lambda: check_name("schedule", typed["name"].strip()))
    check(
        "expression",
        lambda: parse_cron(typed["expression"]).check_interval(schedules.least_interval),
    )
    check("tz", lambda: find_zone(typed["tz"].strip() or "UTC"))
    check("task", lambda: act.app.find_task(typed["task"].strip()))
    if typed["missed"] not in MISSED:
        errors["missed"] = f"choose one of {', '.join(MISSED)}"
    params: dict[str, Any] = {}
    try:
        params = msgspec.json.decode(typed["params"].strip() or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        errors["params"] = f'{error}; write a JSON object such as {{"days": 1}}'
    # What was hidden in the form is as it was, but for no other task: it could send it elsewhere.
    if before is not None and before.task == typed["task"].strip():
        params = _revealed(params, before.params)
    if _hidden_left(params):
        errors["params"] = f"{HIDDEN} stands for a value that is not shown; write the value itself"
    return params, errors


def _revealed(given: Any, stored: Any) -> Any:
    """Return what was given, with what was hidden in it as it is stored."""
    match given, stored:
        case dict(), dict():
            return {
                name: stored[name]
                if each == HIDDEN and name in stored
                else _revealed(each, stored.get(name))
                for name, each in given.items()
            }
        case list(), list():
            pairs = zip(
                given, stored[: len(given)] + [None] * (len(given) - len(stored)), strict=True
            )
            return [_revealed(each, other) for each, other in pairs]
        case _:
            return given


def _hidden_left(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_hidden_left, value.values()))
        case list():
            return any(map(_hidden_left, value))
        case _:
            return bool(value == HIDDEN)
