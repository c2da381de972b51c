"""All parts of the scenario by name, the short ones first. Each can be run by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.dashboard.breaks import breaks, bulk
from bench.dashboard.large import large
from bench.dashboard.live import live
from bench.dashboard.paint import seen
from bench.dashboard.series import series
from bench.figures import Finding
from bench.scenarios.stage import Stage

NAME = "dashboard"
PARTS: dict[str, Callable[[Stage], Iterator[Finding]]] = {
    "dashboard-paint": seen,
    "dashboard-breaks": breaks,
    "dashboard-bulk": bulk,
    "dashboard-live": live,
    "dashboard-series": series,
    "dashboard-million": large,
}
