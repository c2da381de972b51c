"""What is measured, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

# Of these the smaller one is the better one.
LOW = ("latency_p50", "latency_p99", "memory_mb", "connections")


@dataclass
class Figures:
    """What was measured of one contender; None where it does not apply or failed.

    Rates are jobs per second, latencies milliseconds from the enqueue call to the first line of the
    task. `spare_one` is how many cores of the machine were idle while one worker drained.
    """

    name: str
    engine: str
    enqueue_one: float | None = None
    enqueue_hundred: float | None = None
    enqueue_many: float | None = None
    drain_one: float | None = None
    drain_two: float | None = None
    latency_p50: float | None = None
    latency_p99: float | None = None
    memory_mb: float | None = None
    connections: int | None = None
    spare_one: float | None = None
    versions: str = ""
    failures: dict[str, str] = field(default_factory=dict)

    def better(self, other: Figures) -> Figures:
        """The best of two runs, figure by figure. A step failed only if it failed in both."""
        merged: dict[str, Any] = {}
        for each in fields(self):
            ours, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
                merged[each.name] = (min if each.name in LOW else max)(ours, theirs)
            else:
                merged[each.name] = theirs if ours is None else ours
        merged["versions"] = self.versions or other.versions
        merged["failures"] = {
            step: reason
            for step, reason in (self.failures | other.failures).items()
            if merged["latency_p50" if step == "latency" else step] is None
        }
        return Figures(**merged)


@dataclass(kw_only=True)
class Finding:
    """One result of a scenario.

    `reference` is what `value` is compared with, `ratio` one over the other as `bar` means it;
    `met` is None where there is no bar or it does not apply here, and `note` says why. `part` is
    the name by which it is measured again, if that is not the table it is shown in.
    """

    scenario: str
    engine: str
    case: str
    value: float | None
    unit: str
    reference: float | None = None
    ratio: float | None = None
    bar: str = ""
    met: bool | None = None
    note: str = ""
    series: list[tuple[float, float]] = field(default_factory=list)
    part: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
