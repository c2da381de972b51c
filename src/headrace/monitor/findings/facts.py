"""What findings are made of, read with a bound on the work whatever the store holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from headrace.model.job import Job
from headrace.model.limits.breaker import BreakerView
from headrace.model.limits.rate import RateView
from headrace.model.views import EngineSpace, Finding, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.findings.dead_letters import DeadLetterCount
from headrace.monitor.findings.failures import FailureCounts
from headrace.monitor.findings.schedules import MissedSchedule
from headrace.monitor.findings.workers import HeldJobs
from headrace.monitor.snapshot import Snapshot


class Facts(msgspec.Struct, kw_only=True, frozen=True):
    """How things are at one moment. `holders` are of lanes that may be blocked, `held` what lost
    workers held, by their id, `holds` queues that are held, by name; `report` is what the engine
    says about itself. `read_at` is when parts were read that are kept for a while, in the time of
    the engine.
    """

    now: datetime
    queues: Sequence[QueueView]
    workers: Sequence[Worker]
    lanes: Sequence[LaneView]
    dispatchers: Sequence[Mapping[str, Any]] = ()
    holders: Mapping[str, Job] = {}
    held: Mapping[str, HeldJobs] = {}
    holds: Mapping[str, RateView] = {}
    failures: FailureCounts = FailureCounts()
    schedules: Sequence[MissedSchedule] = ()
    report: Sequence[Finding] = ()
    space: EngineSpace | None = None
    letters: DeadLetterCount = DeadLetterCount()
    breakers: Sequence[BreakerView] = ()
    read_at: Mapping[str, float] = {}

    def before(self, seconds: float | None) -> datetime | None:
        """The moment so many seconds ago."""
        return None if seconds is None else self.now - timedelta(seconds=seconds)


def workers_within(workers: Sequence[Worker], queues: Collection[str]) -> list[Worker]:
    """Return the workers that serve some of these queues, as somebody who may see these only sees
    them: without the other queues that they serve, and without tasks, which may be of those.
    """
    if not queues:
        return list(workers)
    return [
        msgspec.structs.replace(
            each, queues=tuple(name for name in each.queues if name in queues), tasks=None
        )
        for each in workers
        if not each.queues or any(name in queues for name in each.queues)
    ]


def within(snapshot: Snapshot, queues: Collection[str]) -> Snapshot:
    """Return what may be seen by somebody who may see these queues only; none named means all."""
    if not queues:
        return snapshot
    return msgspec.structs.replace(
        snapshot,
        queues=[each for each in snapshot.queues if each.name in queues],
        lanes=[each for each in snapshot.lanes if each.queue in queues],
        workers=workers_within(snapshot.workers, queues),
        dispatchers=[],
        telemetry={},
    )
