"""The model of many workers runs, and says what it must."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.scale.__main__ import KEPT
from bench.scale.model import Fleet, simulate

COST = {
    "insert of one job": 0.2,
    "exchange of one job": 0.3,
    "exchange that finds nothing": 0.1,
    "renewal of a lease": 0.1,
}


def test_two_stores_take_half_of_the_jobs_each_but_all_of_the_looks() -> None:
    one, two = (
        max(simulate(Fleet(stores=count, cores=64), COST, seconds=0.05), key=lambda each: each.rate)
        for count in (1, 2)
    )
    assert one.empty_exchanges == two.empty_exchanges
    saved = one.cores_used - two.cores_used
    assert abs(saved - one.rate / 2 * (0.2 + 0.3) / 1_000) < 0.01


def test_a_store_without_enough_cores_is_told() -> None:
    day = simulate(Fleet(cores=1), COST, seconds=0.05)
    assert any(each.overloaded for each in day)
    assert round(sum(each.rate for each in day) / 24 * 86_400) == Fleet().jobs_a_day


def test_it_runs_with_what_was_measured(tmp_path: Path) -> None:
    assert {name for each in json.loads(KEPT.read_text()).values() for name in each} >= set(COST)
    plot = tmp_path / "scale.svg"
    options = ["--simulate", "0.02", "--plot", str(plot)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "postgres, 2 stores: peak" in done.stdout
    assert plot.read_text().startswith("<svg")
