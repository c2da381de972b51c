"""The order of versions: by their numbers, so that 10 comes after 9."""

from __future__ import annotations

import re
from typing import Any

_PARTS = re.compile(r"\d+|[^\d.\-]+")


def version_order(version: int | str) -> tuple[Any, ...]:
    """What versions are sorted by: 9 < 10, "1.9" < "1.10", "2.0-rc1" < "2.0"; "1" is "1.0". What is
    not a number is sorted as text, before numbers.
    """
    text = str(version).strip().partition("+")[0]
    release, dash, early = text.removeprefix("v").partition("-")
    parts = _order(release)
    while parts and parts[-1] == (1, 0, ""):
        parts.pop()
    # What comes before a release sorts below it.
    return (tuple(parts), not dash, tuple(_order(early)))


def _order(text: str) -> list[tuple[int, int, str]]:
    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part) for part in _PARTS.findall(text)
    ]
