"""Numbers, sizes and times as people read them; the filters of the templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

# Instead of what is not known.
NONE = "\N{EN DASH}"
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
# A time in a sentence, and how far it is away.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC( \((?:in \d+ s|now)\))?")
_RELATIVE = re.compile(r'<time datetime="([^"]+)" data-relative>[^<]*<')
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def number(value: float | None) -> str:
    """Return 12,345; the fraction of small numbers only."""
    if value is None:
        return NONE
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


def size(count: float | None) -> str:
    """Return bytes as 1.5 MiB."""
    if count is None:
        return NONE
    for unit in _SIZES:
        if abs(count) < 1_024 or unit == _SIZES[-1]:
            break
        count /= 1_024
    return f"{count:.0f} {unit}" if unit == "B" or abs(count) >= 100 else f"{count:.1f} {unit}"


def duration(seconds: float | timedelta | None) -> str:
    """Return 1 h 5 min, 2.5 s or 40 ms: the two largest units."""
    if seconds is None:
        return NONE
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if abs(seconds) < 1:
        return f"{seconds * 1_000:.0f} ms"
    if abs(seconds) < 10:
        return f"{seconds:.1f} s"
    left, said = round(abs(seconds)), []
    for name, length in _UNITS:
        if left >= length:
            said.append(f"{left // length} {name}")
            left %= length
        elif said:
            break
    return ("\N{MINUS SIGN}" if seconds < 0 else "") + " ".join(said[:2])


def moment(value: datetime | float | None) -> datetime | None:
    """Return a time in UTC."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    return value.astimezone(UTC)


def moment_before(now: datetime, seconds: float | None) -> datetime | None:
    """Return when something began that is so old, to 5 s: what is shown should not flicker."""
    if seconds is None:
        return None
    return datetime.fromtimestamp((now.timestamp() - seconds) // 5 * 5, UTC)


def exact(value: datetime | float | None) -> str:
    """Return 2026-11-17 09:30:05 UTC, as it is shown where scripts do not run."""
    found = moment(value)
    return NONE if found is None else f"{found:%Y-%m-%d %H:%M:%S} UTC"


def iso(value: datetime | float) -> str:
    """Return a time for the attribute `datetime`."""
    found = moment(value)
    return "" if found is None else found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timed(sentence: str) -> Markup:
    """Return a sentence whose times are shown in the zone of the person who reads it, and counted
    there: the sentence itself stays the same.
    """
    return Markup(_TIME.sub(_timed, str(escape(sentence))))  # noqa: S704 - it is escaped


def _timed(found: re.Match[str]) -> str:
    text = found[0].removesuffix(found[3] or "")
    shown = f'<time datetime="{found[1]}T{found[2]}Z"'
    away = f" ({shown} data-relative>{text}</time>)" if found[3] else ""
    return f"{shown}>{text}</time>{away}"


def counted(html: str, now: datetime) -> str:
    """Return a page whose times in words are counted up to now, as its script goes on to count
    them. Only for whole pages: parts that are sent again are the same while nothing changes.
    """

    def one(found: re.Match[str]) -> str:
        said = ago((now - datetime.fromisoformat(found[1])).total_seconds())
        return f'<time datetime="{found[1]}" data-relative>{said}<'

    return _RELATIVE.sub(one, html)


def ago(seconds: float) -> str:
    """Return 5 min ago, in 2 h, or just now."""
    whole = round(seconds)
    for name, length in _UNITS:
        if abs(whole) >= max(length, 5):
            said = f"{abs(whole) // length} {name}"
            return f"in {said}" if whole < 0 else f"{said} ago"
    return "just now"


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "bytes": size,
    "duration": duration,
    "exact": exact,
    "iso": iso,
    "timed": timed,
}
