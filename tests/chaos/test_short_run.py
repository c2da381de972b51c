"""A short run on each engine: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

from collections import Counter

import pytest
from chaos.driver import Result, run
from chaos.faults.registry import FAULTS
from chaos.options import Options
from chaos.screen import summary
from chaos.stores import ENGINES

SECONDS = 12.0
# The machine may be busy with the rest of the suite.
ALLOWANCE = 15.0


# These take long by themselves.
LONG = {"handler hangs", "kill storm"}


async def short(engine: str, **more: object) -> Result:
    """A few seconds of every fault that chance comes to."""
    options: dict[str, object] = {
        "seconds": SECONDS,
        "seed": 4,
        "allowance": ALLOWANCE,
        "patience": 30.0,
        "quiet_limit": 45.0,
    }
    options |= more
    return await run(Options(engine=engine, **options))  # type: ignore[arg-type]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_short_run_breaks_no_promise(engine: str) -> None:
    faults = tuple(name for name, kind in FAULTS.items() if kind.variant == "" and name not in LONG)
    result = await short(engine, faults=faults)
    assert result.judgement.violations == [], summary(result)
    assert result.quiet_seconds is not None
    assert len(result.faults) >= 3
    counts = result.judgement.counts
    assert counts["acknowledged"] > 50
    assert counts["begun"] >= counts["completed"] > 50


@pytest.mark.timeout(240)
async def test_what_redis_loses_with_everysec_is_counted_apart() -> None:
    result = await short(
        "redis", variant="everysec", faults=("power cut with everysec",), burst=1, seconds=5.0
    )
    assert Counter(each.rule for each in result.judgement.violations) == {}, summary(result)
    assert result.allowed["power cut with everysec"]["times"] >= 1
    # A second of jobs was not in the file any more.
    assert result.allowed["all"]["lost"] > 0
