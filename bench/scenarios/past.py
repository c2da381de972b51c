"""What a long past costs a new job: queues, lanes, tasks and workers that came and went.

One store is given that past through the engine's own verbs; another one is empty. Then both are
measured in turns, twice: the same day, when what people may want to look at is still there, and
after upkeep has found the store a day later.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit

import psycopg
import redis

from bench.figures import Finding
from bench.program import WARM_UP
from bench.scenarios.stage import Stage
from headrace.engine.postgres.connection.address import parse_address
from headrace.engine.redis.connection.address import RedisAddress

PROGRAM = "bench.scenarios.past_program"
TURNS = 5
# Enough that a p99 is not the two slowest of a turn.
JOBS = 1_000
DAY_SECONDS = 90_000.0
WORKERS_IN_A_ROUND = 100
LEAST_RATE = 0.9
MOST_LATENCY = 1.1
LIMIT_SECONDS = 1_800.0
ROWS = """
SELECT 'job', count(*) FROM job
UNION ALL SELECT 'history', count(*) FROM history
UNION ALL SELECT 'job_key', count(*) FROM job_key
UNION ALL SELECT 'entry', count(*) FROM entry
UNION ALL SELECT 'lane', count(*) FROM lane
UNION ALL SELECT 'queue', count(*) FROM queue
UNION ALL SELECT 'worker', count(*) FROM worker
UNION ALL SELECT 'record', count(*) FROM record
"""
SIZES = {"hash": "HLEN", "zset": "ZCARD", "list": "LLEN", "set": "SCARD", "string": "EXISTS"}


@dataclass
class Side:
    """What was measured of one store, turn by turn; latencies in milliseconds."""

    rates: list[float] = field(default_factory=list)
    latencies: list[list[float]] = field(default_factory=list)


def past(stage: Stage) -> Iterator[Finding]:
    """The rate and the latency of new jobs, on one engine."""
    with stage.fresh(), stage.beside(), stage.arena.fresh():
        with stage.on_stage():
            built = _build(stage)
            told = f"built in {built['seconds']:.0f} s, {built['upkeep']:.0f} of them upkeep"
            kept = left(stage.arena.url)
        yield from _judged(stage, "the same day", _in_turns(stage), f"{told}; {_shown(kept)}")
        with stage.on_stage():
            seconds = _later(stage)
            kept = left(stage.arena.url)
        # The same for what was measured there until now.
        _later(stage)
        told = f"upkeep took {seconds:.1f} s"
        yield from _judged(stage, "a day later", _in_turns(stage), f"{told}; {_shown(kept)}")


def _build(stage: Stage) -> dict[str, float]:
    workers = stage.jobs(10_000)
    sizes = {
        "lanes": stage.jobs(1_000_000),
        "queues": stage.jobs(100_000),
        "tasks": stage.jobs(10_000),
        "workers": workers,
        "rounds": max(workers // WORKERS_IN_A_ROUND, 2),
    }
    named = [part for name, value in sizes.items() for part in (f"--{name}", value)]
    answer: dict[str, float] = stage.arena.call(PROGRAM, "build", *named, limit=LIMIT_SECONDS)
    stage.arena.come_to_rest()
    return answer


def _later(stage: Stage) -> float:
    answer = stage.arena.call(PROGRAM, "later", "--seconds", DAY_SECONDS, limit=LIMIT_SECONDS)
    stage.arena.come_to_rest()
    return float(answer["seconds"])


def _in_turns(stage: Stage) -> tuple[Side, Side]:
    """The store with a past, and the empty one: who begins changes from turn to turn."""
    aged, empty = Side(), Side()
    for turn in range(stage.runs(TURNS)):
        for with_past in (True, False) if turn % 2 else (False, True):
            if with_past:
                with stage.on_stage():
                    aged.rates.append(_rate(stage))
            else:
                empty.rates.append(_rate(stage))
        answer = _latencies(stage)
        aged.latencies.append(answer["aged"])
        empty.latencies.append(answer["empty"])
    return aged, empty


def _rate(stage: Stage) -> float:
    ticks = stage.ticks(stage.window)
    stage.fill("tick", stage.window)
    return stage.drain(ticks, stage.window)


def _latencies(stage: Stage) -> dict[str, list[float]]:
    """Of both stores, job by job in turns: what else the machine does falls on both alike."""
    count = WARM_UP + stage.jobs(JOBS * min(stage.scale, 10))
    with contextlib.ExitStack() as workers:
        stage.recorder(count)
        workers.enter_context(stage.worker())
        beside = {
            "BENCH_BESIDE_URL": stage.arena.url,
            "BENCH_BESIDE_RECORD": str(stage.arena.record),
        }
        with stage.on_stage():
            stage.recorder(count)
            workers.enter_context(stage.worker())
            answer: dict[str, list[float]] = stage.arena.call(
                *(PROGRAM, "latency", "--count", count), environment=beside, limit=LIMIT_SECONDS
            )
    return answer


def _judged(stage: Stage, when: str, sides: tuple[Side, Side], note: str) -> Iterator[Finding]:
    aged, empty = sides
    rates = median(aged.rates), median(empty.rates)
    note = f"{_spread(aged.rates, empty.rates)}; {note}"
    yield _finding(stage, f"{when}: rate", "jobs/s", rates, note)
    for percent in (50, 99):
        ours, theirs = ([_at(percent, turn) for turn in side.latencies] for side in sides)
        both = [_at(percent, sorted(itertools.chain(*side.latencies))) for side in sides]
        case = f"{when}: idle latency, p{percent}"
        yield _finding(stage, case, "ms", both, _spread(ours, theirs))


def _finding(stage: Stage, case: str, unit: str, values: Sequence[float], note: str) -> Finding:
    """`values` are those of the store with a past, and of the empty one."""
    ours, theirs = values
    ratio, high = ours / theirs, unit == "jobs/s"
    return Finding(
        scenario="past",
        engine=stage.engine,
        case=case,
        value=ours,
        unit=unit,
        reference=theirs,
        ratio=ratio,
        bar=f"≥ {LEAST_RATE:.0%}" if high else f"≤ {MOST_LATENCY:.0%}",
        met=ratio >= LEAST_RATE if high else ratio <= MOST_LATENCY,
        note=note,
    )


def _at(percent: int, latencies: Sequence[float]) -> float:
    return latencies[len(latencies) * percent // 100]


def _spread(ours: Sequence[float], theirs: Sequence[float]) -> str:
    def ends(values: Sequence[float]) -> str:
        digits = 0 if max(values) >= 100 else 2
        return f"{min(values):,.{digits}f} to {max(values):,.{digits}f}"

    return f"single turns {ends(ours)}, empty {ends(theirs)}"


def _shown(left: dict[str, int]) -> str:
    told = ", ".join(f"{name} {count:,}" for name, count in sorted(left.items()))
    return f"left: {told or 'nothing'}"


# -- what is left in a store: rows by table, or members by key -----------------------------------


def left(url: str) -> dict[str, int]:
    """How much there is of what, in a store that nobody uses at present."""
    match urlsplit(url).scheme:
        case "sqlite":
            found = _sqlite(url)
        case "redis":
            found = _redis(url)
        case _:
            found = _postgres(url)
    return {name: count for name, count in found if count}


def _sqlite(url: str) -> Iterator[tuple[str, int]]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0])
    try:
        yield from connection.execute(ROWS).fetchall()
    finally:
        connection.close()


def _postgres(url: str) -> Iterator[tuple[str, int]]:
    with psycopg.connect(url.partition("?")[0]) as connection:
        connection.execute(
            "SELECT set_config('search_path', %s, false)", [parse_address(url).quoted_schema]
        )
        yield from connection.execute(ROWS).fetchall()


def _redis(url: str) -> Iterator[tuple[str, int]]:
    prefix = RedisAddress.parse(url).prefix
    with redis.Redis.from_url(url.partition("?")[0]) as client:
        for key in client.scan_iter(match=f"{glob.escape(prefix)}*"):
            kind = client.type(key).decode()
            count = client.execute_command(SIZES[kind], key)
            # A field without a name is always there; see scripts/upkeep/migrate.lua.
            count -= kind == "hash" and client.hexists(key, "")
            yield key.decode().removeprefix(prefix), count
