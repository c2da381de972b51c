"""The options that choose jobs, the same for `list`, `cancel` and `retry`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from headrace.api_types.requests import FINGERPRINT
from headrace.cli.command import option, together
from headrace.cli.formatting import parse_moment
from headrace.errors import InvalidInput
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter
from headrace.model.names import check_name, check_text
from headrace.model.status import Status
from headrace.suggest import did_you_mean

SOURCES = ("api", "cron", "event", "code", "cli", "workflow")


def one_of(words: Sequence[str]) -> Callable[..., list[str]]:
    """Return what a shell asks for the words that begin as somebody has begun to type."""
    return lambda _context, _option, begun: [each for each in words if each.startswith(begun)]


# For a command, which passes them on to `make_filter`.
filter_options = together(
    option(
        "--status",
        "STATUS",
        "Only this status; may be repeated, or a,b.",
        multiple=True,
        shell_complete=one_of(tuple(Status)),
    ),
    option("--queue", "NAME", "Only this queue; may be repeated, or a,b.", multiple=True),
    option("--task", "NAME", "Only this task; may be repeated, or a,b.", multiple=True),
    option("--lane", "LANE", "Only this lane, e.g. user:42."),
    option("--key", "KEY", "Only this key."),
    option("--source", "SOURCE", f"One of {', '.join(SOURCES)}.", shell_complete=one_of(SOURCES)),
    option("--parent", "ID", "Only children of this job; the beginning of its id will do."),
    option("--since", "TIME", "Created after: 30m, 2h, 7d ago, or ISO 8601."),
    option("--until", "TIME", "Created before; same forms."),
    option("--error-type", "TYPE", "Only errors of this type; may be repeated.", multiple=True),
    option("--worker", "NAME", "Only jobs of this worker."),
    option("--finished-since", "TIME", "Finished after; same forms."),
    option("--finished-until", "TIME", "Finished before; same forms."),
    option("--fingerprint", "HEX", "Only errors with this fingerprint, from --dry-run."),
)


def make_filter(
    now: datetime,
    *,
    status: Sequence[str] = (),
    queue: Sequence[str] = (),
    task: Sequence[str] = (),
    lane: str | None = None,
    key: str | None = None,
    source: str | None = None,
    parent: str | None = None,
    since: str | None = None,
    until: str | None = None,
    error_type: Sequence[str] = (),
    worker: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
) -> JobFilter:
    """Check the options, so that a typing error does not look like an empty list."""
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
        error_types=tuple(check_text("error type", text) for text in parts(error_type)),
        worker=None if worker is None else check_text("worker", worker),
        finished_after=(
            None
            if finished_since is None
            else parse_moment("--finished-since", finished_since, now)
        ),
        finished_before=(
            None
            if finished_until is None
            else parse_moment("--finished-until", finished_until, now)
        ),
    )


def check_fingerprint(text: str | None) -> str | None:
    """Check what was given as a fingerprint."""
    if text is not None and re.fullmatch(FINGERPRINT, text) is None:
        raise InvalidInput(
            f'fingerprint "{text}" is not one: it has 16 digits of 0-9 and a-f; '
            "`headrace jobs retry --all --dry-run` shows them"
        )
    return text


def parts(values: Sequence[str]) -> list[str]:
    """Split what was given several times, or once with commas."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _status(text: str) -> Status:
    try:
        return Status(text.lower())
    except ValueError:
        raise InvalidInput(_unknown("status", text, tuple(Status))) from None


def _unknown(kind: str, text: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(text.lower(), known, otherwise=f"use one of {', '.join(known)}")
    return f'unknown {kind} "{text}"; {hint}'
