"""The probes of dispatchers: from their own process alone."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.dispatchers.heartbeat import DispatcherHeartbeat
from headrace.loops.loop import UNHEALTHY_AFTER, Loop, failing
from headrace.monitor.metrics.state import dispatcher_metrics, process_metrics
from headrace.monitor.metrics.text import text_of
from headrace.probes.probe import STARTING, STOPPING


class DispatcherProbe:
    """What a dispatcher says about itself: its heartbeat, and its loops, of which the first one is
    the first to be stopped.
    """

    def __init__(self, heartbeat: DispatcherHeartbeat, loops: Sequence[Loop]) -> None:
        self._heartbeat = heartbeat
        self._loops = loops

    async def trouble(self) -> str | None:
        """Return why it makes no jobs now."""
        heartbeat = self._heartbeat
        if self._loops[0].stopping:
            return STOPPING
        for loop in self._loops:
            if (trouble := loop.trouble) is not None:
                return trouble
        if heartbeat.misses >= UNHEALTHY_AFTER:
            return failing("the engine", heartbeat.misses, None)
        return STARTING if heartbeat.stored_at is None else None

    async def metrics(self) -> bytes:
        """Return how far it is behind, as it has last seen it."""
        heartbeat = self._heartbeat
        found = [*process_metrics(engine_up=heartbeat.engine_up)]
        if heartbeat.stored_at is not None:
            about = {"name": heartbeat.dispatcher, "silent": False, "seen_at": heartbeat.stored_at}
            found += dispatcher_metrics([{**heartbeat.last_report, **about}])
        return text_of(found)
