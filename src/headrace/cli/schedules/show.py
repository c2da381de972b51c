"""A schedule as it is shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from headrace.api_types.responses import ScheduleTime, ScheduleView
from headrace.cli.formatting import ago, plural, span
from headrace.cli.output import print_line, print_table

# A dispatcher that is well fires within moments.
LATE = 60.0


def state_of(found: ScheduleView) -> str:
    """Whether it fires."""
    if not found.enabled:
        return "disabled"
    return "late" if found.late_seconds > LATE else "enabled"


def fields(found: ScheduleView) -> list[tuple[str, object]]:
    """Its definition, one line for each part."""
    late = found.late_seconds
    rows = [
        ("Schedule", found.name),
        ("State", state_of(found)),
        (
            "Late",
            f"by {span(late)}: no dispatcher runs that knows the task "
            "(headrace dispatcher cron --app …)"
            if late > LATE
            else None,
        ),
        ("When", f"{found.words}, {found.tz}"),
        ("Expression", found.expression),
        ("Task", found.task),
        ("Params", msgspec.json.encode(found.params).decode() if found.params else None),
        ("Overlap", "allowed" if found.allow_overlap else "no: nothing while a job of it runs"),
        ("Missed", found.missed),
        ("From", found.origin),
    ]
    return [(name, value) for name, value in rows if value is not None]


def next_table(times: Sequence[ScheduleTime], now: datetime) -> None:
    """Print the next times."""
    if times:
        print_line()
        print_table(
            ("NEXT", "UTC", "IN"),
            [
                (f"{each.local:%a %Y-%m-%d %H:%M:%S %Z}", _utc(each.utc), ago(each.utc, now))
                for each in times
            ],
        )


def past_tables(found: ScheduleView, now: datetime) -> None:
    """Print the last runs, and the times that were skipped."""
    if found.last_runs:
        print_line()
        print_table(
            ("LAST RUNS", "STATUS", "FOR", "MADE"),
            [
                (
                    each.job_id,
                    each.status,
                    "triggered" if each.time is None else _utc(each.time),
                    ago(each.made_at, now),
                )
                for each in found.last_runs
            ],
        )
    if found.skipped:
        print_line()
        print_table(
            ("SKIPPED", "FIRST", "LAST", "TIMES"),
            [
                (each.reason, _utc(each.first), _utc(each.last), plural(each.count, "time"))
                for each in found.skipped
            ],
        )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
