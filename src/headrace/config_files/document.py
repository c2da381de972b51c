"""What was read: values, and the lines that they are in."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.errors import InvalidInput

LARGEST_FILE = 4 * 1_048_576

Place = tuple[str | int, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says (None if nothing), and in which lines.

    `lines` tells where each part is named, `begins` where its value begins, `hints` what YAML
    took for something else than what is written.
    """

    name: str
    value: Any = None
    lines: dict[Place, int] = {}
    begins: dict[Place, int] = {}
    hints: dict[Place, str] = {}

    def line(self, place: Place = ()) -> int:
        """In which line something is; of what is not there, where it would have to be."""
        return _nearest(self.lines, place)

    def at(self, place: Place = ()) -> str:
        """The same with the file, for an error."""
        return f"{self.name} line {self.line(place)}"

    def value_at(self, place: Place = ()) -> str:
        """Where the value begins, which may be below its name."""
        return f"{self.name} line {_nearest(self.begins, place)}"

    def hint(self, place: Place) -> str:
        """What to add to an error about a value: that YAML reads `no` as false, for example."""
        hint = self.hints.get(place)
        return "" if hint is None else f"; YAML reads {hint}: quote it if text is meant"


class BadDocument(InvalidInput):
    """A file that cannot be read."""


class NoDocument(BadDocument):
    """A file that is not there."""


def dotted(place: Place) -> str:
    """A place as people write it: `steps[0].params.url`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _nearest(lines: dict[Place, int], place: Place) -> int:
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)
