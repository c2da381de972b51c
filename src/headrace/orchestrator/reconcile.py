"""Finds jobs that are leased to this worker and that nobody here knows: their reply was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.orchestrator.attempt import monotonic

TAKEN = 1_000


class Reconciler:
    """Compares what the engine believes to be ours with what we know."""

    def __init__(self, *, engine: Engine, lease_seconds: float) -> None:
        self.engine = engine
        self.lease_seconds = lease_seconds
        # An exchange has failed: whether its claims were made is not known.
        self.reply_lost = False
        self.next = monotonic() + lease_seconds
        self._seen: dict[str, int] = {}
        # Jobs that were taken on. If they had been handed over, word of them may come late.
        self._taken: deque[tuple[str, int]] = deque(maxlen=TAKEN)

    def due(self, now: float) -> bool:
        """Whether to look: after a failed exchange, and once in every lease."""
        return self.reply_lost or now >= self.next

    def forget(self) -> None:
        """The worker has a new name: earlier findings are void."""
        self._seen.clear()
        self._taken.clear()

    def known_already(self, job: ClaimedJob, held: Mapping[str, int]) -> bool:
        """Whether a job that is handed over is in hand, or was taken on before word of it came."""
        return held.get(job.id) == job.token or (job.id, job.token) in self._taken

    async def forgotten(self, worker_id: str, known: Mapping[str, int]) -> list[ClaimedJob]:
        """The jobs to take on: after a failed exchange all that are unknown, otherwise those that
        two looks in a row have seen, since a reply may be on its way.
        """
        leased = await self.engine.held(worker_id)
        unknown = [job for job in leased if known.get(job.id) != job.token]
        sure = [job for job in unknown if self.reply_lost or self._seen.get(job.id) == job.token]
        self._seen = {job.id: job.token for job in unknown}
        self._taken.extend((job.id, job.token) for job in sure)
        self.reply_lost = False
        self.next = monotonic() + self.lease_seconds
        return sure
