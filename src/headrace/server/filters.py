"""Filters of jobs: from query parameters, or from the body of a bulk action."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import Query

from headrace.api_types.requests import NAME, TEXT, FilterRequest, Moment
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter, Source
from headrace.model.status import Status
from headrace.model.times import in_utc
from headrace.server.http.problems import Refused, invalid

MOST_NAMES = 100

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
    return _job_filter(
        {
            "status": status,
            "queue": queue,
            "task": task,
            "lane": lane,
            "key": key,
            "source": source,
            "parent": parent,
            "group": group,
            "since": _parsed("since", since),
            "until": _parsed("until", until),
        }
    )


def body_filter(wanted: FilterRequest) -> JobFilter:
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
    return _job_filter(given)


def _job_filter(given: Mapping[str, Any]) -> JobFilter:
    parent, since, until = given.get("parent"), given.get("since"), given.get("until")
    return JobFilter(
        statuses=tuple(given.get("status") or ()),
        queues=tuple(given.get("queue") or ()),
        tasks=tuple(given.get("task") or ()),
        lane=given.get("lane"),
        key=given.get("key"),
        source=given.get("source"),
        parent=None if parent is None else parse_id(parent),
        group=given.get("group"),
        created_after=None if since is None else in_utc(since),
        created_before=None if until is None else in_utc(until),
    )


def job_cursor(cursor: str | None) -> str | None:
    """Return where a page of jobs begins."""
    return None if cursor is None else parse_id(cursor)


def _parsed(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return msgspec.convert(text, Moment)
    except msgspec.ValidationError:
        raise Refused(
            422,
            "invalid-input",
            f"{name} must be a time in ISO 8601 with a time zone",
            field=name,
            value=text,
            remedy='write "2026-01-31T08:00:00Z"; in a URL "+" has to be written as "%2B"',
        ) from None
