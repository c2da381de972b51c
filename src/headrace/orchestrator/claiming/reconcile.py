"""Finds jobs that are leased to this worker but unknown to it: their claim's reply was lost."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Released, Settlement
from headrace.orchestrator.running.attempt import monotonic

log = logging.getLogger("headrace.dispatcher")

REMEMBERED = 1_000

# A job and its token: one attempt.
Key = tuple[str, int]


class Reconciliation(msgspec.Struct, frozen=True):
    """What a comparison has found: jobs that were not started here, and attempts that ended here
    without an outcome, so that the engine still takes them for running.
    """

    unstarted: list[ClaimedJob] = []
    silent: list[ClaimedJob] = []


class Reconciler:
    """Compares the jobs that the engine has leased to this worker with those it knows.

    The engine's reply is about some moment between request and reply, and the worker goes on
    meanwhile: outcomes in flight are settled, jobs arrive, the lease may be lost. So that no
    attempt is started twice, a job is adopted only if it was not known here at any time from before
    the request until the reply, and if the worker is still registered under the same id.
    """

    def __init__(self, *, engine: Engine, lease_seconds: float) -> None:
        self.engine = engine
        self.lease_seconds = lease_seconds
        # When to compare: once in every lease, and at once after a reply was lost.
        self.due_at = monotonic() + lease_seconds
        # A comparison is in flight: `received` has to be called for jobs that arrive.
        self.comparing = False
        self._reply_lost = False
        self._seen: set[Key] = set()
        # Every attempt that was known here since the comparison in flight began.
        self._known: set[Key] = set()
        # Jobs that were adopted. If they had been pushed to us, the message may still arrive.
        self._adopted: deque[Key] = deque(maxlen=REMEMBERED)
        # Attempts that ended here without an outcome, because their lease is lost. They must not
        # start again if the engine does not know that yet.
        self._silent: set[Key] = set()

    def reply_lost(self) -> None:
        """An exchange has failed: whether its claims were made is unknown. Compare at once."""
        self._reply_lost = True
        self.due_at = 0.0

    def reset(self) -> None:
        """Forget everything, also a comparison in flight: the worker has a new id."""
        self._seen.clear()
        self._adopted.clear()
        self._silent.clear()
        self._known = set()
        self.comparing = self._reply_lost = False
        self.due_at = monotonic() + self.lease_seconds

    def known_already(self, job: ClaimedJob, held: Mapping[str, int]) -> bool:
        """Return whether a pushed job is held, or was adopted before the message arrived."""
        return held.get(job.id) == job.token or (job.id, job.token) in self._adopted

    def received(self, jobs: Sequence[ClaimedJob]) -> None:
        """Note jobs that arrive while `comparing`."""
        self._known.update([(job.id, job.token) for job in jobs])

    def ended_silently(self, job: ClaimedJob) -> None:
        """Note an attempt that ended without an outcome although the worker holds its lease."""
        self._silent.add((job.id, job.token))

    def begun_here(self, job: ClaimedJob, held: Mapping[str, int]) -> bool:
        """Return whether a leased job is held, or was started here and ended silently."""
        return held.get(job.id) == job.token or (job.id, job.token) in self._silent

    async def compare(self, worker_id: str, held: Mapping[str, int]) -> Reconciliation:
        """Return what to adopt and what to write off.

        After a lost reply every unknown job counts as unstarted. Otherwise only those that two
        comparisons in a row have seen: a reply may be in flight.
        """
        known = self._known = set(held.items())
        self.comparing = True
        silent = set(self._silent)
        reply_lost, self._reply_lost = self._reply_lost, False
        try:
            leased = await self.engine.claimed_by(worker_id)
        except BaseException:
            if self._known is known:
                self.comparing = False
                if reply_lost:
                    self.reply_lost()
            raise
        if self._known is not known:
            return Reconciliation()  # `reset` was called: the reply is about an earlier id
        self.comparing = False
        self.due_at = 0.0 if self._reply_lost else monotonic() + self.lease_seconds
        unknown = {key: job for job in leased if (key := (job.id, job.token)) not in known}
        ended = [unknown.pop(key) for key in silent if key in unknown]
        # Those that are not leased to us any more can be forgotten.
        self._silent -= silent
        sure = (
            unknown if reply_lost else {key: unknown[key] for key in unknown if key in self._seen}
        )
        self._seen = unknown.keys() - sure.keys()
        self._adopted.extend(sure)
        if sure:
            log.warning("Recovered %d jobs whose claim reply was lost", len(sure))
        return Reconciliation(list(sure.values()), ended)

    async def release_unstarted(
        self, worker_id: str, releases: Sequence[Settlement], held: Mapping[str, int] | None
    ) -> None:
        """Release what is leased to a stopping worker and was never started: `releases` that are
        not settled yet, jobs whose reply was lost, and jobs that were pushed after the last round.

        `held` None: the lease was lost, so what has begun here is not known.
        """
        # A limit of 0 ends pushes to this worker.
        await self.engine.exchange([], worker_id=worker_id, limit=0)
        unstarted = [
            Settlement(job.id, job.token, Released())
            for job in await self.engine.claimed_by(worker_id)
            if held is not None and not self.begun_here(job, held)
        ]
        if releases or unstarted:
            await self.engine.exchange([*releases, *unstarted])
