"""One slot of a worker, and where slots get their jobs from."""

from __future__ import annotations

from typing import Protocol

from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.claiming.prefetch import PrefetchLimit, UnstartedJobs
from headrace.orchestrator.running.attempt import Attempt


class Slot:
    """Room for one running job, or for one chunk of them."""

    __slots__ = ("attempt", "closed", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempt: Attempt | None = None
        self.closed = False

    def done(self) -> bool:
        return self.closed


class JobSource(Protocol):
    """Where slots get their jobs from: the dispatcher."""

    unstarted: UnstartedJobs
    chunks: ChunkCollector
    prefetch: PrefetchLimit

    @property
    def cancelled(self) -> bool:
        """Return whether the program is ending: start nothing any more."""
