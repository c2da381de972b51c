"""All parts of the scenario, the short ones first."""

from __future__ import annotations

from collections.abc import Iterator

from bench.dashboard.large import large
from bench.dashboard.live import live
from bench.dashboard.paint import seen
from bench.dashboard.series import series
from bench.figures import Finding
from bench.scenarios.stage import Stage


def dashboard(stage: Stage) -> Iterator[Finding]:
    """What a browser sees, how long pages take, and what looking and series cost a drain."""
    yield from seen(stage)
    yield from live(stage)
    yield from series(stage)
    yield from large(stage)
