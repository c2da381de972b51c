"""What was measured: one figure over the jobs that had ended by then."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Point(NamedTuple):
    """A figure. `life` is the process that it is of; it is the same where there is only one."""

    jobs: float
    value: float
    life: int


@dataclass
class Series:
    """One figure of one thing over a run, such as the memory of the server."""

    of: str
    what: str
    unit: str
    points: list[Point] = field(default_factory=list)

    @property
    def name(self) -> str:
        """How it is told from all others."""
        return f"{self.of}: {self.what}"

    def lives(self) -> list[list[Point]]:
        """The points of each process, in order."""
        found: dict[int, list[Point]] = defaultdict(list)
        for point in self.points:
            found[point.life].append(point)
        return list(found.values())


class Book:
    """All series of a run, by name."""

    def __init__(self) -> None:
        self.series: dict[str, Series] = {}

    def note(
        self, of: str, what: str, unit: str, value: float, *, jobs: float, life: int = 0
    ) -> None:
        """Write one figure down."""
        made = Series(of, what, unit)
        self.series.setdefault(made.name, made).points.append(Point(jobs, value, life))

    def note_all(self, of: str, unit: str, values: dict[str, float], *, jobs: float) -> None:
        """Write down all of a kind. What was there before and is gone counts nothing now."""
        known = [each.what for each in self.series.values() if (each.of, each.unit) == (of, unit)]
        for what in dict.fromkeys([*known, *values]):
            self.note(of, what, unit, values.get(what, 0.0), jobs=jobs)
