"""Reads facts, with a bound on the work: what changes slowly, or costs more, is read less often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar

from headrace.breakers.store import open_breakers
from headrace.engine.base import Records
from headrace.engine.missing_stores import STORE_AWAY, missing_stores
from headrace.model.limits.breaker import BreakerView
from headrace.model.views import EngineReport
from headrace.monitor.cached_reads import CachedReads
from headrace.monitor.findings.dead_letters import DeadLetterCount, count_letters
from headrace.monitor.findings.engine import engine_report
from headrace.monitor.findings.facts import Facts
from headrace.monitor.findings.failures import FailureCounts, failure_counts
from headrace.monitor.findings.lanes import lane_holders
from headrace.monitor.findings.queues import queue_holds
from headrace.monitor.findings.schedules import missed_schedules
from headrace.monitor.findings.workers import held_jobs
from headrace.monitor.snapshot import Snapshot
from headrace.task.app_like import AppLike

FAILURES_SECONDS = 5.0
SCHEDULES_SECONDS = 10.0
LETTERS_SECONDS = 10.0
BREAKERS_SECONDS = 2.0
REPORT_SECONDS = 60.0
# For so much longer what is kept is shown while it is read anew, so that nobody waits who looks all
# the time, as an open page does.
MEANWHILE_SECONDS = 2.0
# So many sets of queues that keys are restricted to are remembered.
MOST_VIEWS = 100

FAILURES, SCHEDULES, REPORT, LETTERS = "failures", "schedules", "report", "letters"
LANES, WORKERS, BREAKERS = "lanes", "workers", "breakers"
KEPT_SECONDS = {
    FAILURES: FAILURES_SECONDS,
    SCHEDULES: SCHEDULES_SECONDS,
    REPORT: REPORT_SECONDS,
    LETTERS: LETTERS_SECONDS,
    BREAKERS: BREAKERS_SECONDS,
}
USUAL = frozenset({FAILURES, SCHEDULES, REPORT, LANES, WORKERS, BREAKERS})
"""What findings are made of."""

T = TypeVar("T")


class FactsReader:
    """Reads facts of one store, for one event loop."""

    def __init__(self, host: AppLike, *, meanwhile: float = 0.0) -> None:
        """What was kept long enough is read anew, and waited for: for so many seconds longer it is
        returned `meanwhile`.
        """
        self._host = host
        self._kept: dict[str, CachedReads[tuple[float, Any]]] = {
            part: CachedReads(seconds, meanwhile=meanwhile, most=MOST_VIEWS, clock=host.clock.now)
            for part, seconds in KEPT_SECONDS.items()
        }

    def forget(self) -> None:
        """Read everything anew for the next who asks: something was changed here."""
        for each in self._kept.values():
            each.forget()

    async def read(
        self,
        snapshot: Snapshot,
        *,
        queues: Collection[str] = (),
        parts: Collection[str] = USUAL,
        at: float | None = None,
        letters: int = 0,
    ) -> Facts:
        """Return the facts for a snapshot, of these queues only if any are named. Of the rest only
        `parts` are read; of dead letters one more than `letters` at most. `at` is the time of the
        engine, if that was asked for before the snapshot was taken.
        """
        engine, now = self._host.engine, self._host.clock.utcnow()
        at = now.timestamp() if at is None else at
        chosen = frozenset(queues)
        read_at: dict[str, float] = {}

        async def kept(
            part: str, read: Callable[[], Awaitable[T]], empty: T, *, of_some: bool = False
        ) -> T:
            # What concerns all queues is not for those who may see some.
            if part not in parts or (chosen and not of_some):
                return empty

            async def stamped() -> tuple[float, T]:
                return at, await read()

            read_at[part], value = await self._kept[part].get(chosen, stamped)
            found: T = value
            return found

        report: EngineReport | None = await kept(REPORT, engine.report, None)
        lease = self._host.settings.lease_seconds
        said = [] if report is None else engine_report(report, lease)
        return Facts(
            now=now,
            queues=snapshot.queues,
            workers=snapshot.workers,
            lanes=snapshot.lanes,
            dispatchers=snapshot.dispatchers,
            holders=await lane_holders(engine, snapshot.lanes) if LANES in parts else {},
            held=await held_jobs(engine, snapshot.workers, chosen) if WORKERS in parts else {},
            holds=await queue_holds(engine, snapshot.queues) if LANES in parts else {},
            failures=await kept(
                FAILURES,
                lambda: failure_counts(engine, now, chosen),
                FailureCounts(),
                of_some=True,
            ),
            schedules=await kept(SCHEDULES, lambda: missed_schedules(engine, now), ()),
            report=[
                # Whether a store is away is known now, not only when the report was read.
                *missing_stores(engine),
                *(each for each in said if each.kind != STORE_AWAY),
            ],
            space=None if report is None else report.space,
            letters=await kept(LETTERS, lambda: count_letters(engine, letters), DeadLetterCount()),
            breakers=await kept(BREAKERS, lambda: _breakers(engine, chosen), (), of_some=True),
            read_at=read_at,
        )


async def _breakers(engine: Records, queues: Collection[str]) -> Sequence[BreakerView]:
    found = await open_breakers(engine)
    return [each.view for key, each in sorted(found.items()) if not queues or key[0] in queues]
