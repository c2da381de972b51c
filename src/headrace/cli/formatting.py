"""Times and spans as people read and write them."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta

from headrace.errors import InvalidInput
from headrace.model.job import Job
from headrace.model.times import in_utc
from headrace.model.worker import Worker

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)?")
_SECONDS = {
    None: 1.0,
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}


def parse_span(name: str, text: str) -> float:
    """Seconds in "90", "1.5h", "10m" or "7d"."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInput(
            f"{name} {text!r} is not a span of time; write seconds (90), or 500ms, 30s, 10m, 2h, 7d"
        )
    return float(found[1]) * _SECONDS[found[2]]


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
    if _SPAN.fullmatch(text.strip().lower()):
        try:
            return now - timedelta(seconds=parse_span(name, text))
        except OverflowError:
            raise InvalidInput(f"{name} {text!r} is too far back; use a shorter span") from None
    try:
        return parse_time(name, text)
    except InvalidInput as error:
        raise InvalidInput(f"{error} (or a span back from now: 30m, 2h, 7d)") from None


def span(seconds: float) -> str:
    """A span of time in at most two units: "340 ms", "2.5 s", "3 min 20 s", "2 d 4 h"."""
    seconds = max(seconds, 0.0)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for size, unit, smaller, name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{whole} s"


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


def plural(count: int, noun: str) -> str:
    """ "1 job", "2,000 jobs"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def failure(job: Job) -> str:
    """Return why a job failed: "ValueError: no such page"."""
    return f"{job.error_type}: {job.error}" if job.error_type else job.error or "no reason kept"


def retry_time(job: Job, now: datetime) -> str:
    """Return when a job that failed runs again: "again in 5 s"."""
    left = (job.run_at - now).total_seconds()
    return f"again in {span(left)}" if left > 0 else "again now"


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
