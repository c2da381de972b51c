"""Does it stay as fast as it grows? Each case as a share of the rate with 20,000 jobs waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg

from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.stage import PROGRAM, Stage

RUNS = 4
SETTLE_SECONDS = 3.0
BACKLOG = 20_000


def growth(stage: Stage) -> Iterator[Finding]:
    """Lanes, on one engine; `million` and `held` are the cases that take long."""
    yield compared(
        stage,
        f"{stage.jobs(100_000):,} waiting in one lane, others",
        in_turns(stage, lambda: _hot_lane(stage)),
        0.8,
    )
    yield compared(
        stage,
        f"{stage.jobs(10_000):,} lanes of 10",
        in_turns(stage, lambda: _lanes(stage)),
        0.5,
    )


def held(stage: Stage) -> Iterator[Finding]:
    """A transaction that somebody else holds open; only PostgreSQL keeps dead rows for it."""
    if stage.engine == "postgres":
        yield _held_transaction(stage)


@dataclass
class Turns:
    """Rates that were measured in turns: a case, and 20,000 jobs without lanes."""

    rates: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)


def in_turns(stage: Stage, measure: Callable[[], float]) -> Turns:
    """Measure a case and what it is compared with, several times."""
    turns = Turns()
    for _ in range(stage.runs(RUNS)):
        turns.plain.append(stage.plain())
        turns.rates.append(measure())
    return turns


def compared(stage: Stage, case: str, turns: Turns, bar: float, note: str = "") -> Finding:
    """The best rate as a share of the best with 20,000 jobs waiting."""
    rate, base = max(turns.rates), max(turns.plain)
    ratio = rate / base
    return Finding(
        scenario="growth",
        engine=stage.engine,
        case=case,
        value=rate,
        unit="jobs/s",
        reference=base,
        ratio=ratio,
        bar=f"≥ {bar:.0%}",
        met=ratio >= bar,
        note=note,
    )


def _hot_lane(stage: Stage) -> float:
    """The lane was there first, so everybody else comes after its jobs."""
    count = stage.window
    with stage.fresh():
        ticks = stage.ticks(count)
        stage.fill("hot", stage.jobs(100_000))
        stage.fill("tick", count)
        return stage.drain(ticks, count)


def _lanes(stage: Stage) -> float:
    lanes = stage.jobs(10_000)
    with stage.fresh():
        ticks = stage.ticks(10 * lanes)
        stage.fill("lanes", 10 * lanes, lanes=lanes)
        return stage.drain(ticks, 10 * lanes)


def _held_transaction(stage: Stage) -> Finding:
    """Jobs come and go while somebody else's snapshot keeps every dead row alive."""
    seconds = 600.0 if stage.long else 60.0 / min(stage.scale, 4)
    before = min(max(seconds / 5, 5.0), 30.0)
    with stage.fresh():
        ticks = stage.ticks(Ticks.EVERY)
        stage.fill("tick", 1)  # makes the schema
        with (
            stage.arena.process(PROGRAM, "feed", "--count", BACKLOG),
            stage.worker(),
            psycopg.connect(stage.arena.url) as connection,
        ):
            stage.until(lambda: ticks.count > BACKLOG)
            time.sleep(SETTLE_SECONDS)
            free = _watched(ticks, before)
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM headrace.worker")
            held = _watched(ticks, seconds)
            connection.rollback()
    base, rate = _mean(free), _mean(held)
    last = _mean(held[-max(len(held) // 10, 1) :])
    return Finding(
        scenario="growth",
        engine=stage.engine,
        case=f"a transaction held open for {seconds:g} s",
        value=rate,
        unit="jobs/s",
        reference=base,
        ratio=rate / base,
        bar="≥ 50%",
        met=rate / base >= 0.5,
        note=f"beside a producer; in the last tenth of the time {last / base:.0%}",
        series=held,
    )


def _watched(ticks: Ticks, seconds: float) -> list[tuple[float, float]]:
    """Starts in each second, as (second, jobs per second)."""
    begin = at = time.monotonic()
    seen, rates = ticks.count, []
    while at - begin < seconds:
        time.sleep(1.0)
        now, count = time.monotonic(), ticks.count
        rates.append((round(now - begin, 1), (count - seen) / (now - at)))
        at, seen = now, count
    return rates


def _mean(rates: list[tuple[float, float]]) -> float:
    return sum(rate for _, rate in rates) / len(rates)
