"""Times and spans as people read and write them."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta

from headrace.errors import InvalidInput
from headrace.model.job import Job
from headrace.model.times import in_utc, is_span, parse_span
from headrace.model.worker import Worker
from headrace.monitor.words import plural, span

__all__ = [
    "TimeZone",
    "ago",
    "attempt_of",
    "bytes_of",
    "clean",
    "clock",
    "failure",
    "parse_moment",
    "parse_span",
    "parse_time",
    "plural",
    "retry_time",
    "short",
    "shown_time",
    "span",
    "took",
    "width",
    "worker_state",
    "zone_name",
]

# More attempts than this are no limit that anybody has set.
ENDLESS = 1_000


def parse_time(name: str, text: str) -> datetime:
    """A moment in ISO 8601. The time zone has to be there, so that nothing is guessed."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"{name} {text!r} is not a time; write ISO 8601 such as 2030-01-31T08:30:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InvalidInput(
            f"{name} {text!r} has no time zone; add Z for UTC, or an offset such as +09:00"
        )
    return in_utc(moment)


def parse_moment(name: str, text: str, now: datetime) -> datetime:
    """A moment: ISO 8601, or a span that counts back from now ("2h" is two hours ago)."""
    if is_span(text):
        try:
            return now - timedelta(seconds=parse_span(name, text))
        except OverflowError:
            raise InvalidInput(f"{name} {text!r} is too far back; use a shorter span") from None
    try:
        return parse_time(name, text)
    except InvalidInput as error:
        raise InvalidInput(f"{error} (or a span back from now: 30m, 2h, 7d)") from None


def ago(moment: datetime | None, now: datetime) -> str:
    """A moment relative to now: "5 s ago", "in 3 min", "just now"."""
    if moment is None:
        return "-"
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "just now"
    # Whole seconds are enough here and keep columns calm.
    shown = span(float(round(abs(seconds))))
    return f"{shown} ago" if seconds > 0 else f"in {shown}"


_FORM = "%Y-%m-%d %H:%M:%S"


class TimeZone:
    """Whether times are shown in UTC, or as the clock on this machine's wall: `--local-time`."""

    local = False


def shown_time(moment: datetime, *, zone: bool = True) -> str:
    """A moment, with the zone that it is shown in: "2026-03-01 12:00:30 UTC"."""
    there = moment.astimezone() if TimeZone.local else in_utc(moment)
    return f"{there:{_FORM}}" + (f" {zone_name(moment)}" if zone else "")


def clock(moment: datetime) -> str:
    """The time of day: "12:00:30Z" in UTC."""
    return f"{moment.astimezone():%H:%M:%S}" if TimeZone.local else f"{in_utc(moment):%H:%M:%S}Z"


def zone_name(moment: datetime) -> str:
    """The zone that a moment is shown in."""
    return f"{moment.astimezone():%Z}" if TimeZone.local else "UTC"


def attempt_of(job: Job, between: str = " of ") -> str:
    """Which attempt it is: "1 of 4". One that may go on for ever, as a run of a workflow does each
    time a step has ended, has no last one.
    """
    if job.max_attempts > ENDLESS:
        return str(job.attempt)
    return f"{job.attempt}{between}{job.max_attempts}"


def took(start: datetime | None, end: datetime | None) -> str:
    """How long something lasted."""
    return "-" if start is None or end is None else span((end - start).total_seconds())


def bytes_of(size: float) -> str:
    """A number of bytes: "512 B", "38.2 MB"."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def failure(job: Job) -> str:
    """Return why a job failed: "ValueError: no such page"."""
    return f"{job.error_type}: {job.error}" if job.error_type else job.error or "no reason kept"


def retry_time(job: Job, now: datetime) -> str:
    """Return when a job that failed runs again: "again in 5 s"."""
    left = (job.run_at - now).total_seconds()
    return f"again in {span(left)}" if left > 0 else "again now"


def short(text: str, size: int) -> str:
    """Return the beginning of a text, up to a word, and "…" if there is more."""
    text = text.partition("\n")[0]
    if len(text) <= size:
        return text
    kept = text[: size - 1].rpartition(" ")[0] if " " in text[: size - 1] else text[: size - 2]
    return f"{kept.rstrip()} …"


def worker_state(worker: Worker) -> str:
    """Return a worker's state in one word."""
    return "lost" if not worker.alive else "ok" if worker.healthy else "unhealthy"


def clean(text: str, *, lines: bool = False) -> str:
    """Text that is safe on a terminal: control characters are shown, not obeyed."""
    return "".join(
        character
        if character.isprintable() or (lines and character in "\n\t")
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def width(text: str) -> int:
    """How many columns a text takes; Korean and the like take two for each character."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
