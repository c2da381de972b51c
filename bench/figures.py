"""What is measured, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import median_high
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

    @classmethod
    def over(cls, runs: Sequence[Figures], *, middle: bool = False) -> Figures:
        """Several runs of one contender as one, figure by figure: the best, or the median. A step
        failed only if it failed in all.
        """
        merged: dict[str, Any] = {}
        for each in fields(cls):
            values = [getattr(run, each.name) for run in runs]
            known = [value for value in values if value is not None]
            if not known or not isinstance(known[0], (int, float)):
                merged[each.name] = known[0] if known else None
            elif middle:
                merged[each.name] = median_high(known)
            else:
                merged[each.name] = (min if each.name in LOW else max)(known)
        merged["versions"] = next((run.versions for run in runs if run.versions), "")
        reasons = {step: why for run in reversed(runs) for step, why in run.failures.items()}
        merged["failures"] = {
            step: why
            for step, why in reasons.items()
            if merged["latency_p50" if step == "latency" else step] is None
        }
        return cls(**merged)


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
