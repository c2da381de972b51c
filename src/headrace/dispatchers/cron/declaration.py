"""What becomes of a schedule when a service declares it, and whose it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.schedules.schedule import KeptSchedule, Schedule


class ScheduleOfOtherOwner(InvalidSetting):
    """A schedule of this name belongs to another service."""


def declaration(
    schedule: Schedule, origin: str, owner: str | None
) -> Callable[[KeptSchedule | None, Any], KeptSchedule]:
    """Return the change that a declaration makes. It raises `ScheduleOfOtherOwner`, and
    keeps what people have changed by hand until the declaration itself changes.
    """

    def change(before: KeptSchedule | None, now: Any) -> KeptSchedule:
        if before is None:
            return KeptSchedule(
                schedule=schedule, since=now, origin=origin, declared=schedule, owner=owner
            )
        if before.owner not in (None, owner):
            raise ScheduleOfOtherOwner(
                f'schedule "{schedule.name}" belongs to "{before.owner}" ({before.origin}); give '
                "this one another name, or remove that one: headrace schedules remove "
                f"{schedule.name}"
            )
        said = before.declared
        if said == schedule and (before.origin, before.owner) == (origin, owner):
            return before
        stays = said is not None and said.enabled == schedule.enabled
        enabled = before.schedule.enabled if stays else schedule.enabled
        applied = before.changed(msgspec.structs.replace(schedule, enabled=enabled), now)
        return msgspec.structs.replace(applied, origin=origin, declared=schedule, owner=owner)

    return change
