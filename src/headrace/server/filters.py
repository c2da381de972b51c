"""Filters of jobs: from query parameters, or from the body of a bulk action."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from fastapi import Query

from headrace.api_types.requests import NAME, TEXT, FilterRequest, Moment
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter, Source
from headrace.model.status import Status
from headrace.model.times import in_utc
from headrace.server.http.problems import Refused, invalid

MOST_NAMES = 100
T = TypeVar("T", bound=str)

Names = Annotated[list[Annotated[str, Query(pattern=NAME)]] | None, Query(max_length=MOST_NAMES)]
Text = Annotated[str | None, Query(pattern=TEXT)]
Time = Annotated[str | None, Query(json_schema_extra={"format": "date-time"})]
Cursor = Annotated[
    str | None,
    Query(description="`cursor` of the page before.", json_schema_extra={"format": "uuid"}),
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]


async def job_filter(  # noqa: PLR0917 - FastAPI gives them by name
    status: Annotated[list[Status] | None, Query(max_length=MOST_NAMES)] = None,
    queue: Names = None,
    task: Names = None,
    lane: Text = None,
    key: Text = None,
    source: Annotated[Source | None, Query()] = None,
    parent: Annotated[str | None, Query(json_schema_extra={"format": "uuid"})] = None,
    group: Text = None,
    since: Time = None,
    until: Time = None,
) -> JobFilter:
    """Return the filter in the query parameters, some of which may be repeated."""
    return JobFilter(
        statuses=tuple(status or ()),
        queues=tuple(queue or ()),
        tasks=tuple(task or ()),
        lane=lane,
        key=key,
        source=source,
        parent=None if parent is None else parse_id(parent),
        group=group,
        created_after=_parsed("since", since),
        created_before=_parsed("until", until),
    )


def body_filter(wanted: FilterRequest, *, default: tuple[Status, ...]) -> JobFilter:
    """Return the filter in the body of a bulk action. An empty one would match every job."""
    given = {
        name: value
        for name, value in msgspec.structs.asdict(wanted).items()
        if value is not msgspec.UNSET
    }
    if not given:
        raise invalid(
            "filter is empty; name at least one field, for instance status", field="filter"
        )
    return JobFilter(
        statuses=_several(given.get("status")) or default,
        queues=_several(given.get("queue")),
        tasks=_several(given.get("task")),
        lane=given.get("lane"),
        key=given.get("key"),
        source=given.get("source"),
        parent=given.get("parent") and parse_id(given["parent"]),
        group=given.get("group"),
        created_after=_in_utc(given.get("since")),
        created_before=_in_utc(given.get("until")),
    )


def job_cursor(cursor: str | None) -> str | None:
    """Return where a page of jobs begins."""
    return None if cursor is None else parse_id(cursor)


def _several(value: list[T] | None) -> tuple[T, ...]:
    return () if value is None else tuple(value)


def _parsed(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return in_utc(msgspec.convert(text, Moment))
    except msgspec.ValidationError:
        raise Refused(
            422,
            "invalid-input",
            f"{name} must be a time in ISO 8601 with a time zone",
            field=name,
            value=text,
            remedy='write "2026-01-31T08:00:00Z"; in a URL "+" has to be written as "%2B"',
        ) from None


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else in_utc(moment)
