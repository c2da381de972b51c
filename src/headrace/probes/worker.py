"""The probe of a worker: from its own process alone, so it answers while the engine is away."""

from __future__ import annotations

import msgspec

from headrace.monitor.metrics.counters import counted_metrics
from headrace.monitor.metrics.one_worker import OwnCounters
from headrace.monitor.metrics.state import process_metrics, worker_metrics
from headrace.monitor.metrics.text import text_in_pieces
from headrace.orchestrator.orchestrator import JobOrchestrator


class ThisWorker(msgspec.Struct, kw_only=True, frozen=True):
    """The numbers of the worker of this process."""

    name: str
    host: str
    slots: int
    running: int
    memory_bytes: int
    cpu_percent: float
    healthy: bool
    alive: bool = True


class WorkerProbe:
    """What a worker says about itself; see `headrace.probes.probe.Probe`."""

    def __init__(self, orchestrator: JobOrchestrator) -> None:
        self._orchestrator = orchestrator
        self._counters = OwnCounters(orchestrator.telemetry)

    async def trouble(self) -> str | None:
        """Return why it takes no jobs now."""
        return self._orchestrator.trouble

    async def metrics(self) -> bytes:
        """Return its own numbers, under the names that a server has for all workers."""
        orchestrator = self._orchestrator
        telemetry = orchestrator.telemetry
        found = [*process_metrics(engine_up=orchestrator.engine_up)]
        if (info := orchestrator.info) is not None:
            worker = ThisWorker(
                name=info.name,
                host=info.host,
                slots=info.slots,
                running=sum(slot.attempt is not None for slot in orchestrator.workers),
                memory_bytes=telemetry.memory_bytes,
                cpu_percent=telemetry.cpu_percent,
                healthy=orchestrator.healthy,
            )
            found += worker_metrics([worker], {worker.name: telemetry})
        found += counted_metrics(self._counters.read())
        return await text_in_pieces(found)
