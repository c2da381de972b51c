"""Short runs with real processes: the tool measures what is there, and finds what leaks."""

from __future__ import annotations

import pytest
from soak.driver import Result, run
from soak.judge import judge
from soak.options import Options
from soak.scene import KINDS
from soak.screen import summary

# So few jobs tell nothing about Headrace, but all about a leak that is large enough.
FEW_JOBS = 30.0


async def short(seconds: float, **options: object) -> Result:
    made = {"engine": "sqlite", "seconds": seconds, "history": 2.0, "rate": 12.0, **options}
    return await run(Options(**made))  # type: ignore[arg-type]


@pytest.mark.timeout(240)
async def test_every_process_and_every_table_is_looked_at() -> None:
    result = await short(11.0, patience=60.0)
    said = summary(result)
    assert result.deaths == [], said
    assert result.growing == [], said
    assert sum(result.restarts.values()) >= 2
    assert result.jobs > 20
    names = set(result.book.series)
    for kind in KINDS:
        figures = ("memory", "memory of its own", "descriptors", "threads", "asyncio tasks")
        assert {f"{kind}: {each}" for each in figures} <= names, kind
    assert {"store: history", "store: queue", "store: worker", "store: record audit"} <= names
    assert result.left is not None
    assert result.left["history"] <= 25
    assert all(len(line) <= 80 for line in said.splitlines())


@pytest.mark.timeout(240)
async def test_a_process_and_a_table_that_leak_are_found() -> None:
    result = await short(20.0, program="tests.soak.leaking_program", day_after=False)
    series = result.book.series
    found = {
        name: judge(series[name], least_jobs=FEW_JOBS).verdict
        for name in ("worker: memory", "store: record leak", "load: memory", "store: lane")
    }
    assert found == {
        "worker: memory": "grows",
        "store: record leak": "grows",
        "load: memory": "flat",
        "store: lane": "flat",
    }, summary(result)
