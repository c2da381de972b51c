"""Filters of jobs by the names that the API has for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.model.ids import parse_id
from headrace.model.job import JobFilter
from headrace.model.times import in_utc


def filter_fields(wanted: JobFilter, fingerprint: str | None = None) -> dict[str, Any]:
    """Return a filter by the names of the API, without what is empty."""
    fields = {
        "status": [status.value for status in wanted.statuses],
        "queue": list(wanted.queues),
        "task": list(wanted.tasks),
        "lane": wanted.lane,
        "key": wanted.key,
        "source": wanted.source,
        "parent": None if wanted.parent is None else parse_id(wanted.parent),
        "group": wanted.group,
        "since": moment_text(wanted.created_after),
        "until": moment_text(wanted.created_before),
        "error_type": list(wanted.error_types),
        "worker": wanted.worker,
        "finished_since": moment_text(wanted.finished_after),
        "finished_until": moment_text(wanted.finished_before),
        "fingerprint": fingerprint,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def moment_text(moment: datetime | None) -> str | None:
    """Return a time as it stands in requests."""
    return None if moment is None else in_utc(moment).isoformat().replace("+00:00", "Z")
