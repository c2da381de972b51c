"""The scenarios by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.dashboard import scenario as dashboard
from bench.figures import Finding
from bench.ingest import scenario as ingest
from bench.scenarios.budget import budget
from bench.scenarios.chunks import chunks
from bench.scenarios.events import events
from bench.scenarios.follow import follow
from bench.scenarios.foreign import foreign
from bench.scenarios.growth import growth, held
from bench.scenarios.handlers import handlers, payloads
from bench.scenarios.http import http
from bench.scenarios.listen import listen
from bench.scenarios.memory import memory
from bench.scenarios.million import million
from bench.scenarios.past import past
from bench.scenarios.rates import rates
from bench.scenarios.stage import Stage
from bench.scenarios.stages import stages

SCENARIOS: dict[str, Callable[[Stage], Iterator[Finding]]] = {
    "growth": growth,
    "million": million,
    "held": held,
    "foreign": foreign,
    "past": past,
    "handlers": handlers,
    "payloads": payloads,
    "memory": memory,
    "budget": budget,
    "http": http,
    "stages": stages,
    "events": events,
    "follow": follow,
    "chunks": chunks,
    "rates": rates,
    "listen": listen,
    **dashboard.PARTS,
    **ingest.PARTS,
}
# Names that stand for several.
GROUPS: dict[str, tuple[str, ...]] = {
    dashboard.NAME: tuple(dashboard.PARTS),
    ingest.NAME: tuple(ingest.PARTS),
}
