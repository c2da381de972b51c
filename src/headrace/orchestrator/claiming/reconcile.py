"""Finds jobs that are leased to this worker and that nobody here knows: their reply was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.orchestrator.running.attempt import monotonic

REMEMBERED = 1_000

# A job and its token: one attempt.
Key = tuple[str, int]


class Reconciliation(msgspec.Struct, frozen=True):
    """What a look has found: jobs that nobody here has begun, and attempts that ended here without
    an outcome, so that only the engine still counts on them.
    """

    unstarted: list[ClaimedJob] = []
    silent: list[ClaimedJob] = []


class Reconciler:
    """Compares what the engine believes to be ours with what we know.

    The engine's answer is about some moment between question and answer, and the worker goes on
    meanwhile: outcomes are taken that are on their way, jobs come in, the lease may be lost. So
    that no attempt is begun twice, a job is taken on only if it was not here at any time from
    before the question until the answer, and if the worker is still the one that was asked about.
    """

    def __init__(self, *, engine: Engine, lease_seconds: float) -> None:
        self.engine = engine
        self.lease_seconds = lease_seconds
        # An exchange has failed: whether its claims were made is not known.
        self.reply_lost = False
        self.next = monotonic() + lease_seconds
        self._seen: set[Key] = set()
        # Everything that was here since the look under way began; None if none is.
        self._known: set[Key] | None = None
        # Jobs that were taken on. If they had been handed over, word of them may come late.
        self._adopted: deque[Key] = deque(maxlen=REMEMBERED)
        # Attempts that ended here and had nothing to say, because their lease is lost. If the
        # engine does not think so, they must not begin again.
        self._silent: set[Key] = set()

    def due(self, now: float) -> bool:
        """Whether to look: after a failed exchange, and once in every lease."""
        return self.reply_lost or now >= self.next

    def reset(self) -> None:
        """The worker has a new name: earlier findings are void, also of a look under way."""
        self._seen.clear()
        self._adopted.clear()
        self._silent.clear()
        self._known = None
        self.reply_lost = False

    def known_already(self, job: ClaimedJob, held: Mapping[str, int]) -> bool:
        """Whether a job that is handed over is in hand, or was taken on before word of it came."""
        return held.get(job.id) == job.token or (job.id, job.token) in self._adopted

    def received(self, jobs: Sequence[ClaimedJob]) -> None:
        """Jobs have come in."""
        if self._known is not None:
            self._known.update([(job.id, job.token) for job in jobs])

    def ended_silently(self, job: ClaimedJob) -> None:
        """An attempt has ended without an outcome, though the worker has its lease."""
        self._silent.add((job.id, job.token))

    def begun_here(self, job: ClaimedJob, held: Mapping[str, int]) -> bool:
        """Whether a job that is leased to us is known, or has been begun and ended silently."""
        return held.get(job.id) == job.token or (job.id, job.token) in self._silent

    async def compare(self, worker_id: str, held: Mapping[str, int]) -> Reconciliation:
        """Unstarted are, after a failed exchange, all that are unknown, otherwise those that two
        looks in a row have seen, since a reply may be on its way.
        """
        known = self._known = set(held.items())
        silent = set(self._silent)
        reply_lost, self.reply_lost = self.reply_lost, False
        try:
            leased = await self.engine.held(worker_id)
        except BaseException:
            if self._known is known:
                self._known = None
                self.reply_lost = self.reply_lost or reply_lost
            raise
        if self._known is not known:
            return (
                Reconciliation()
            )  # `forget` was called: this is about a worker that we are no longer
        self._known = None
        self.next = monotonic() + self.lease_seconds
        unknown = {key: job for job in leased if (key := (job.id, job.token)) not in known}
        ended = [unknown.pop(key) for key in silent if key in unknown]
        # Of those that are not leased to us any more nothing has to be remembered.
        self._silent -= silent
        sure = (
            unknown if reply_lost else {key: unknown[key] for key in unknown if key in self._seen}
        )
        self._seen = unknown.keys() - sure.keys()
        self._adopted.extend(sure)
        return Reconciliation(list(sure.values()), ended)
