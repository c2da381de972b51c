"""Filters of jobs: from query parameters, or from the body of a bulk action."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import Query

from headrace.api_types.requests import FINGERPRINT, NAME, TEXT, FilterRequest, Moment
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
Mark = Annotated[
    str | None,
    Query(pattern=FINGERPRINT, description="Only jobs whose error has this fingerprint."),
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
    error_type: Annotated[
        list[Annotated[str, Query(pattern=TEXT)]] | None, Query(max_length=MOST_NAMES)
    ] = None,
    worker: Text = None,
    finished_since: Time = None,
    finished_until: Time = None,
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
            "since": parse_time("since", since),
            "until": parse_time("until", until),
            "error_type": error_type,
            "worker": worker,
            "finished_since": parse_time("finished_since", finished_since),
            "finished_until": parse_time("finished_until", finished_until),
        }
    )


async def failure_filter(
    queue: Names = None, task: Names = None, since: Time = None, until: Time = None
) -> JobFilter:
    """Return which failures are asked for: times are on when they finished."""
    after, before = parse_time("since", since), parse_time("until", until)
    return JobFilter(
        queues=tuple(queue or ()),
        tasks=tuple(task or ()),
        finished_after=None if after is None else in_utc(after),
        finished_before=None if before is None else in_utc(before),
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
    parent = given.get("parent")
    return JobFilter(
        statuses=tuple(given.get("status") or ()),
        queues=tuple(given.get("queue") or ()),
        tasks=tuple(given.get("task") or ()),
        lane=given.get("lane"),
        key=given.get("key"),
        source=given.get("source"),
        parent=None if parent is None else parse_id(parent),
        group=given.get("group"),
        created_after=_in_utc(given.get("since")),
        created_before=_in_utc(given.get("until")),
        error_types=tuple(given.get("error_type") or ()),
        worker=given.get("worker"),
        finished_after=_in_utc(given.get("finished_since")),
        finished_before=_in_utc(given.get("finished_until")),
    )


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else in_utc(moment)


def job_cursor(cursor: str | None) -> str | None:
    """Return where a page of jobs begins."""
    return None if cursor is None else parse_id(cursor)


def parse_time(name: str, text: str | None) -> datetime | None:
    """Return the time in a query parameter."""
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
