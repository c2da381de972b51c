"""How things are and what is wrong, made at most once a second for all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime

import msgspec

from headrace.api_types.monitoring import Summary
from headrace.api_types.responses import DispatcherView
from headrace.model.views import Finding, QueueView
from headrace.monitor.cached_reads import CachedReads
from headrace.monitor.findings import findings
from headrace.monitor.findings.facts import within
from headrace.monitor.findings.read import MOST_VIEWS, FactsReader
from headrace.monitor.snapshot import FRESH_SECONDS, Snapshot, Snapshots
from headrace.task.app_like import AppLike

# Who opens a page is shown what was made so long ago at most, while it is made anew.
OPENED_SECONDS = 1.0

OwnDepths = Callable[[Collection[str], Sequence[QueueView]], Awaitable[list[QueueView]]]


class Summaries:
    """Returns a summary that is at most a second old. Concurrent callers share one."""

    def __init__(
        self,
        host: AppLike,
        snapshots: Snapshots | None = None,
        *,
        own: OwnDepths | None = None,
        meanwhile: float = 0.0,
    ) -> None:
        """`own` says how deep queues are for somebody who may see only these. What is read every
        few seconds only is shown for so many seconds longer, `meanwhile` it is read anew.
        """
        self._host = host
        self._own = own
        self._snapshots = snapshots or Snapshots(host)
        self._made: dict[frozenset[str], tuple[Snapshot, asyncio.Task[Summary]]] = {}
        self._facts = FactsReader(host, meanwhile=meanwhile)
        self._opened: CachedReads[Summary] = CachedReads(
            FRESH_SECONDS, meanwhile=OPENED_SECONDS - FRESH_SECONDS, times=0.0, most=MOST_VIEWS
        )

    async def get(self, queues: Collection[str] = ()) -> Summary:
        """Return the summary, of these queues only if any are named. Raises `EngineUnavailable`
        while the engine is away.
        """
        snapshot = await self._snapshots.get()
        view = frozenset(queues)
        made = self._made.get(view)
        if made is None or made[0] is not snapshot:
            self._made.pop(view, None)
            while len(self._made) >= MOST_VIEWS:
                del self._made[next(iter(self._made))]
            task = asyncio.create_task(self._make(snapshot, view), name="headrace summary")
            task.add_done_callback(_seen)
            made = self._made[view] = (snapshot, task)
        # A caller that is cancelled must not cancel it for the others.
        return await asyncio.shield(made[1])

    async def at_opening(self, queues: Collection[str] = ()) -> Summary:
        """Return one that is little more than a second old at most, for a page that is opened. It
        is made anew meanwhile, and nobody waits for that: the stream of the page brings it.
        """
        view = frozenset(queues)
        return await self._opened.get(view, lambda: self.get(view))

    def forget(self) -> None:
        """Read everything anew for the next who asks: something was changed here."""
        self._opened.forget()
        self._snapshots.forget()
        self._facts.forget()
        self._made.clear()

    async def _make(self, whole: Snapshot, queues: frozenset[str]) -> Summary:
        snapshot = within(whole, queues)
        if queues and self._own is not None:
            depths = await self._own(queues, snapshot.queues)
            snapshot = msgspec.structs.replace(snapshot, queues=depths)
        facts = await self._facts.read(snapshot, queues=queues)
        return _summary(snapshot, findings(facts), facts.now, restricted=bool(queues))


def _summary(
    snapshot: Snapshot, found: list[Finding], now: datetime, *, restricted: bool
) -> Summary:
    workers = snapshot.workers
    if restricted:
        # Some tasks are of other queues.
        workers = [msgspec.structs.replace(each, tasks=None) for each in workers]
    return Summary(
        at=now,
        findings=found,
        queues=list(snapshot.queues),
        workers=list(workers),
        lanes=list(snapshot.lanes),
        dispatchers=msgspec.convert(list(snapshot.dispatchers), list[DispatcherView]),
    )


def _seen(task: asyncio.Task[Summary]) -> None:
    if not task.cancelled():
        task.exception()  # those who waited were told
