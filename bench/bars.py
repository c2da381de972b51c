"""The bars that issues 3 and 20 set, judged by what one run has measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.contenders import BARE, CONTENDERS, HEADRACE, INDEPENDENT
from bench.figures import LOW, Figures, Finding


@dataclass
class Verdict:
    """A bar, what was measured, and whether that meets it. None: it cannot be told here."""

    work: str
    bar: str
    measured: str
    met: bool | None
    note: str = ""


@dataclass(frozen=True)
class Versus:
    """At least `times` what each of these has. A low figure is good where the table says so."""

    work: str
    engine: str
    figure: str
    times: float
    against: tuple[str, ...] = ()
    asyncio_only: bool = False


DRAIN = "drain 20,000 no-op jobs, one worker"
PGQUEUER = ("PgQueuer, batch 100", "PgQueuer, default")
SINGLE = "enqueue single, one after the other"
HUNDRED = "enqueue single, 100 callers at once"
PEERS = [
    Versus(DRAIN, "postgres", "drain_one", 3.8, ("PgQueuer, batch 100",)),
    Versus(DRAIN, "postgres", "drain_one", 9, ("PgQueuer, default",)),
    Versus(DRAIN, "postgres", "drain_one", 0.6, (BARE,)),
    Versus(DRAIN, "postgres", "drain_one", 0.7, (INDEPENDENT,)),
    Versus(DRAIN, "redis", "drain_one", 5, ("Huey (no acknowledgement)",)),
    Versus(DRAIN, "redis", "drain_one", 10, ("Taskiq, stream",)),
    Versus(DRAIN, "redis", "drain_one", 0.6, (BARE,)),
    Versus(DRAIN, "sqlite", "drain_one", 10, ("Huey",)),
    Versus("enqueue many", "postgres", "enqueue_many", 1.5, PGQUEUER),
    Versus("enqueue many", "postgres", "enqueue_many", 0.7, (INDEPENDENT,)),
    Versus("enqueue many", "redis", "enqueue_many", 1),
    Versus("enqueue many", "sqlite", "enqueue_many", 1),
    Versus(HUNDRED, "postgres", "enqueue_hundred", 5),
    Versus(HUNDRED, "sqlite", "enqueue_hundred", 5),
    Versus(HUNDRED, "redis", "enqueue_hundred", 2),
    *(
        Versus(SINGLE, engine, "enqueue_one", 1, asyncio_only=True)
        for engine in ("postgres", "redis", "sqlite")
    ),
    *(
        Versus(f"idle latency, {figure[-3:]}", engine, figure, 1)
        for engine in ("postgres", "redis", "sqlite")
        for figure in ("latency_p50", "latency_p99")
    ),
]


def verdicts(results: list[Figures], findings: list[Finding]) -> Iterator[Verdict]:
    """Every bar that these results can say something about."""
    for bar in PEERS:
        yield from _versus(bar, results)
    for engine in ("postgres", "redis", "sqlite"):
        yield from _two_workers(engine, results)
    for finding in findings:
        if finding.bar:
            yield _of(finding)


def _versus(bar: Versus, results: list[Figures]) -> Iterator[Verdict]:
    ours = _value(results, bar.engine, bar.figure, lambda each: each.name == HEADRACE)
    kinds = {(each.name, each.engine): each for each in CONTENDERS}
    low = bar.figure in LOW

    def counts(each: Figures) -> bool:
        if bar.against:
            return each.name in bar.against
        kind = kinds[each.name, each.engine]
        return kind.peer and (kind.asyncio or not bar.asyncio_only)

    rivals = [each for each in results if each.engine == bar.engine and counts(each)]
    best = _best(rivals, bar.figure, low=low)
    if best is None or ours is None:
        if bar.asyncio_only and ours is not None and any(e.engine == bar.engine for e in results):
            yield Verdict(
                f"{bar.engine}: {bar.work}",
                "above every asyncio peer",
                f"{ours:,.0f}/s",
                None,
                "there is no asyncio peer on this engine",
            )
        return
    theirs = getattr(best, bar.figure)
    if low:
        told, met = "below every peer", ours < theirs
        measured = f"{ours:.1f} ms, {best.name} {theirs:.1f} ms"
    else:
        whom = best.name if bar.against else f"every{' asyncio' * bar.asyncio_only} peer"
        told = f"above {whom}" if bar.times == 1 else f"≥ {bar.times:g}x {whom}"
        met = ours / theirs >= bar.times if bar.times != 1 else ours > theirs
        measured = f"{ours / theirs:.2f}x {best.name} ({ours:,.0f}/s to {theirs:,.0f}/s)"
    yield Verdict(f"{bar.engine}: {bar.work}", told, measured, met)


def _two_workers(engine: str, results: list[Figures]) -> Iterator[Verdict]:
    for each in results:
        if each.engine != engine or each.name != HEADRACE:
            continue
        if each.drain_one is None or each.drain_two is None:
            continue
        ratio, spare = each.drain_two / each.drain_one, each.spare_one
        met: bool | None = ratio >= 1.3
        note = ""
        if not met and engine == "sqlite":
            met, note = None, "a file has one writer at a time; there is no server"
        elif not met and spare is not None and spare < 1:
            # What a second worker could run on is taken: by the first one, and by the server.
            met, note = None, f"no core to spare: one worker and the server leave {spare:.1f} idle"
        yield Verdict(
            f"{engine}: two workers", "≥ 1.3x one, with a core to spare", f"{ratio:.2f}x", met, note
        )


def _of(finding: Finding) -> Verdict:
    if finding.value is None:
        measured = "-"
    elif finding.ratio is not None and finding.unit.endswith("/s"):
        decimals = 0 if finding.value >= 20 else 1
        measured = (
            f"{finding.ratio:.1%} "
            f"({finding.value:,.{decimals}f}/s to {finding.reference:,.{decimals}f}/s)"
        )
    elif finding.ratio is not None and finding.unit == "ms":
        measured = f"{finding.ratio:.1%} ({finding.value:.2f} ms to {finding.reference:.2f} ms)"
    else:
        measured = f"{finding.value:,.1f} {finding.unit}".replace(".0 connections", " connections")
    return Verdict(
        f"{finding.engine}: {finding.scenario}, {finding.case}",
        finding.bar,
        measured,
        finding.met,
        finding.note,
    )


def _value(
    results: Iterable[Figures], engine: str, figure: str, wanted: Callable[[Figures], bool]
) -> float | None:
    for each in results:
        if each.engine == engine and wanted(each):
            value: float | None = getattr(each, figure)
            return value
    return None


def _best(rivals: list[Figures], figure: str, *, low: bool) -> Figures | None:
    measured = [each for each in rivals if getattr(each, figure) is not None]
    pick = min if low else max
    return pick(measured, key=lambda each: getattr(each, figure), default=None)
