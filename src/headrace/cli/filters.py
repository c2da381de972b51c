"""The flags that choose jobs, the same for `list`, `cancel` and `retry`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from headrace.cli.formatting import parse_moment
from headrace.errors import InvalidInput
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter
from headrace.model.names import check_name, check_text
from headrace.model.status import Status
from headrace.suggest import did_you_mean

SOURCES = ("api", "cron", "event", "code", "cli", "workflow")

Statuses = Annotated[
    list[str] | None,
    typer.Option("--status", metavar="STATUS", help="Only this status; may be repeated, or a,b."),
]
Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="NAME", help="Only this queue; may be repeated, or a,b."),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="NAME", help="Only this task; may be repeated, or a,b."),
]
LaneName = Annotated[
    str | None, typer.Option("--lane", metavar="LANE", help="Only this lane, e.g. user:42.")
]
Key = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only this key.")]
SourceName = Annotated[
    str | None, typer.Option("--source", metavar="SOURCE", help=f"One of {', '.join(SOURCES)}.")
]
Parent = Annotated[
    str | None, typer.Option("--parent", metavar="ID", help="Only jobs that this job made.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Created after: 30m, 2h, 7d ago, or ISO 8601."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Created before; same forms.")
]


def make_filter(
    now: datetime,
    *,
    status: list[str] | None = None,
    queue: list[str] | None = None,
    task: list[str] | None = None,
    lane: str | None = None,
    key: str | None = None,
    source: str | None = None,
    parent: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> JobFilter:
    """Check the flags, so that a typing error is not answered with an empty list."""
    if source is not None and source not in SOURCES:
        raise InvalidInput(_unknown("source", source, SOURCES))
    return JobFilter(
        statuses=tuple(_status(text) for text in parts(status)),
        queues=tuple(check_name("queue", text) for text in parts(queue)),
        tasks=tuple(check_name("task", text) for text in parts(task)),
        lane=None if lane is None else check_text("lane", lane),
        key=None if key is None else check_text("key", key),
        source=source,
        parent=None if parent is None else parse_id(parent),
        created_after=None if since is None else parse_moment("--since", since, now),
        created_before=None if until is None else parse_moment("--until", until, now),
    )


def parts(values: list[str] | None) -> list[str]:
    """What was given several times, or once with commas."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def _status(text: str) -> Status:
    try:
        return Status(text.lower())
    except ValueError:
        raise InvalidInput(_unknown("status", text, tuple(Status))) from None


def _unknown(kind: str, text: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(text.lower(), known, otherwise=f"use one of {', '.join(known)}")
    return f'unknown {kind} "{text}"; {hint}'
