"""A file's content: values, and the lines that they are in."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.errors import InvalidInput

LARGEST_FILE = 4 * 1_048_576

Place = tuple[str | int, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a file (None if it is empty), and the line of each part.

    `lines` has the line in which each part is named, `begins` where its value begins.
    """

    name: str
    value: Any = None
    lines: dict[Place, int] = {}
    begins: dict[Place, int] = {}

    def line(self, place: Place = ()) -> int:
        """Return the line of a part; of one that is missing, the line of what should contain it."""
        return _nearest(self.lines, place)

    def at(self, place: Place = ()) -> str:
        """Return the file and the line, for an error."""
        return f"{self.name} line {self.line(place)}"

    def value_at(self, place: Place = ()) -> str:
        """Return the file and the line in which a value begins, which may be below its name."""
        return f"{self.name} line {_nearest(self.begins, place)}"


class BadDocument(InvalidInput):
    """A file that cannot be read."""


class NoDocument(BadDocument):
    """A file that is not there."""


def dotted(place: Place) -> str:
    """Return a place as people write it: `steps[0].params.url`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def hint(value: object) -> str:
    """Return what to add to an error about a value that YAML 1.1 read as true or false."""
    if isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return f"; {value} is text in YAML 1.2, only true and false are not"
    return ""


def _nearest(lines: dict[Place, int], place: Place) -> int:
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)
