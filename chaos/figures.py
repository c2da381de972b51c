"""Figures of a run: how often each fault happened, and how long recovery took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.driver import Injected, Result


@dataclass(frozen=True)
class FaultFigures:
    """One kind of fault. `first` is the first job after it, `last` when all victims had one."""

    name: str
    count: int
    first_p50: float | None
    first_p99: float | None
    last_p50: float | None
    last_p99: float | None


def by_fault(result: Result) -> list[FaultFigures]:
    """A line for each kind, by name."""
    kinds: dict[str, list[Injected]] = defaultdict(list)
    for each in result.faults:
        kinds[each.name].append(each)
    return [of_kind(name, kinds[name]) for name in sorted(kinds)]


def of_kind(name: str, faults: Sequence[Injected]) -> FaultFigures:
    """The figures of one kind."""
    recoveries = [each.recovery for each in faults if each.recovery is not None]
    first = [each.first for each in recoveries if each.first is not None]
    last = [each.last for each in recoveries if each.last is not None]
    return FaultFigures(
        name,
        len(faults),
        percentile(first, 50),
        percentile(first, 99),
        percentile(last, 50),
        percentile(last, 99),
    )


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that this many percent do not exceed; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share / 100), len(ordered) - 1)]


def seconds(value: float | None) -> str:
    """Seconds as people read them."""
    return "-" if value is None else f"{value:.2f} s"
