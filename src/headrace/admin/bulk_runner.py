"""Does bulk actions: one server each, in batches, whatever is killed or stopped meanwhile.

What holds at every moment:

* The record is the truth. A server may change jobs only while it is the `owner`, and becomes the
  owner by a write that is guarded by the version of the record: of several, one is accepted. It
  writes at least every few seconds, its `beat`. Another takes over when that is older than the
  lease, by the time of the engine.
* Jobs are changed only after they are written down as `pending`, with their tokens. So whoever goes
  on after a kill knows which jobs may have been changed, and looks at each again. The cursor is
  behind them: no other job is looked at twice.
* `retry` runs a job again only if it is finished and still has that token, in one step of the
  engine. So a job that was run since, whether it failed again or not, is left alone, also by a
  server that was frozen in between and has not noticed that it is no longer the owner. A job that
  had no attempt since (somebody has cancelled it) finished after the cutoff, and is left alone by
  whoever takes over.
* `retry` lets a scheduled job run now only if it is found scheduled, with that token, once more
  directly before.
* A failed step of a workflow is retried by its run, once, whether the step, the run or both match.
* `cancel` may be repeated: what is cancelled stays so.
* Only the owner counts, and only in the write that also removes what it has counted from `pending`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from headrace import job_tree
from headrace.admin.bulk import (
    BATCH,
    KIND,
    LOOK,
    SAMPLES,
    BulkHost,
    BulkRecord,
    How,
    Pending,
    all_records,
    decode,
)
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import parts
from headrace.errors import EngineError, RecordConflict
from headrace.loops.loop import Loop, around
from headrace.model.ids import new_id
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.model.times import moment_of
from headrace.model.views import Record
from headrace.monitor.search import WORKFLOW, Seen, brief_page

log = logging.getLogger("headrace.bulk")

# So many are changed between two looks at the clock.
PART = 50
PAUSE = 5.0
MOST_RECORDS = 200
LONGEST_KEPT = 30 * 86_400.0

Tell = Callable[[str, BulkRecord], Awaitable[None]]


class Superseded(Exception):
    """The action has another owner now, or was stopped."""


class BulkRunner(Loop):
    """Looks for actions without an owner that is alive, and does them one after the other."""

    name = "bulk actions"

    def __init__(
        self,
        app: BulkHost,
        tell: Tell,
        *,
        seen: Seen | None = None,
        lease: float,
        batch: int = BATCH,
    ) -> None:
        super().__init__()
        self._app = app
        self._tell = tell
        self._seen = seen
        self._lease = lease
        self._pause = min(PAUSE, lease / 2)
        self._batch = batch
        self._owner = new_id()

    @property
    def stopping(self) -> bool:
        """Whether the server is about to end."""
        return self._stopping

    async def tick(self) -> float:
        """Do what is to be done, then rest for some seconds."""
        await self._app.open()
        engine = self._app.engine
        records = await all_records(engine)
        for record in records:
            bulk = decode(record)
            if bulk.state == "running":
                alive = await engine.now() - bulk.beat < self._lease
                if bulk.owner in ("", self._owner) or not alive:
                    await _Run(self, engine, record.key, bulk, record.version).run()
            elif bulk.told != bulk.state:
                await self._write_down(engine, record, bulk)
        await self._prune(engine, records)
        return around(self._pause)

    async def _write_down(self, engine: Engine, record: Record, bulk: BulkRecord) -> None:
        """Tell the audit log how it ended. That is one line, so telling it twice does no harm."""
        await self._tell(record.key, bulk)
        bulk.told = bulk.state
        try:
            await engine.record_put(
                KIND, record.key, msgspec.json.encode(bulk), version=record.version
            )
        except RecordConflict:
            self.wake()  # it was changed meanwhile: look again

    async def _prune(self, engine: Engine, records: Sequence[Record]) -> None:
        """Delete old actions that are over."""
        oldest = await engine.now() - LONGEST_KEPT if records else 0.0
        for index, record in enumerate(records):
            old = record.updated_at.timestamp() < oldest
            if old or index < len(records) - MOST_RECORDS:
                bulk = decode(record)
                if bulk.state != "running" and bulk.told == bulk.state:
                    # One that was resumed since it was listed stays.
                    with contextlib.suppress(RecordConflict):
                        await engine.record_delete(KIND, record.key, version=record.version)


class _Run:
    """One action, as long as this server is its owner."""

    def __init__(
        self, runner: BulkRunner, engine: Engine, key: str, bulk: BulkRecord, version: int
    ) -> None:
        self.runner = runner
        self.engine = engine
        self.key = key
        self.bulk = bulk
        self.version = version
        # What was found pending may have been changed by the owner before.
        self.in_doubt = {each.id for each in bulk.pending}
        self.written = 0.0

    async def run(self) -> None:
        """Do it to the end, unless it is stopped or taken over."""
        bulk = self.bulk
        before, bulk.owner = bulk.owner, self.runner._owner
        try:
            await self._save(claiming=True)
            if before not in ("", bulk.owner):
                log.warning("Bulk action %s is taken over from a server that is gone", self.key)
            while bulk.pending or not bulk.walked:
                await self._change_pending()
                if not bulk.walked:
                    await self._find_more()
                if self.runner.stopping:
                    bulk.owner = ""  # so that another server goes on at once
                    await self._save()
                    return
                await self._save()
            bulk.state, bulk.finished_at = "finished", moment_of(await self.engine.now())
            await self._save()
        except Superseded:
            return
        except EngineError:
            raise  # the loop tries again
        except Exception as error:
            log.exception("Bulk action %s failed", self.key)
            bulk.state, bulk.error = "failed", f"{type(error).__name__}: {error}"[:500]
            try:
                await self._save()
            except Superseded:
                return
        self.runner.wake()

    async def _find_more(self) -> None:
        """Write down the next jobs, whose turn it is then."""
        bulk = self.bulk
        while not bulk.pending and not bulk.walked and not self._due():
            page = await brief_page(
                self.engine, bulk.wanted(), bulk.fingerprint,
                cursor=bulk.cursor, limit=self.runner._batch, look=LOOK, seen=self.runner._seen,
                runs=bulk.runs,
            )  # fmt: skip
            bulk.pending = [Pending(job.id, job.token, _how(job)) for job in page.jobs]
            bulk.cursor, bulk.walked = page.cursor, page.cursor is None
        self.in_doubt = set()

    async def _change_pending(self) -> None:
        bulk = self.bulk
        while bulk.pending:
            if self._due():
                await self._save()
            some = bulk.pending[:PART]
            changed = await self._change(some)
            bulk.pending = bulk.pending[PART:]
            bulk.matched += len(some)
            bulk.changed += changed
            bulk.ids += [each.id for each in some][: SAMPLES - len(bulk.ids)]

    async def _change(self, some: Sequence[Pending]) -> int:
        """Change jobs that are written down, and return how many of them this action has changed,
        now or before.
        """
        done = 0
        doubtful = [each.id for each in some if each.id in self.in_doubt]
        if doubtful:
            now = {job.id: job async for jobs in parts(self.engine, doubtful) for job in jobs}
            left = []
            for each in some:
                if each.id not in self.in_doubt:
                    left.append(each)
                elif (job := now.get(each.id)) is not None:
                    if self._was_changed(each, job):
                        done += 1
                    else:
                        left.append(each)
            some = left
        if self.bulk.action == "cancel":
            ids = [each.id for each in some]
            reason = self.bulk.reason or "cancelled"
            return done + len(await job_tree.cancel(self.engine, ids, reason) if ids else ())
        scheduled = {each.id: each.token for each in some if each.how == "now"}
        if scheduled:
            # One that has become due and run meanwhile would run twice.
            still = [
                job.id
                async for jobs in parts(self.engine, list(scheduled))
                for job in jobs
                if job.status is Status.SCHEDULED and job.token == scheduled[job.id]
            ]
            done += len(await self.engine.rerun(still))
        tokens = {each.id: each.token for each in some if not each.how}
        if tokens:
            done += len(await self.engine.rerun_unchanged(tokens))
        runs = {each.id: each.token for each in some if each.how == "run"}
        return done + (await self._retry_runs(runs) if runs else 0)

    def _was_changed(self, pending: Pending, job: Job) -> bool:
        if self.bulk.action == "cancel":
            return job.status is Status.CANCELLED or job.cancel_requested
        if pending.how == "now":
            return job.status is not Status.SCHEDULED
        ended = job.completed_at
        again = ended is not None and ended >= self.bulk.cutoff
        return not job.status.final or job.token != pending.token or again

    async def _retry_runs(self, tokens: Mapping[str, int]) -> int:
        """Retry runs, and jobs that may be steps of one: together, so that each run is begun again
        once.
        """
        unchanged = [
            job
            async for jobs in parts(self.engine, list(tokens))
            for job in jobs
            if job.token == tokens[job.id] and job.status.final
        ]
        if not unchanged:
            return 0
        return len(await self.runner._app.rerun(unchanged, queues=self.bulk.queues))

    # -- the record ----------------------------------------------------------------------------

    def _due(self) -> bool:
        """Return whether it is time to be heard of: long before the lease is over."""
        return time.monotonic() - self.written > self.runner._lease / 5

    async def _save(self, *, claiming: bool = False) -> None:
        """Write the record. Raises `Superseded` if there is another owner, or it was stopped."""
        bulk = self.bulk
        # Before the write, so that the lease is never thought to be longer than it is.
        began = time.monotonic()
        bulk.beat = await self.engine.now()
        try:
            stored = await self.engine.record_put(
                KIND, self.key, msgspec.json.encode(bulk), version=self.version
            )
        except RecordConflict:
            if claiming:
                raise Superseded from None
            await self._stopped()
            raise Superseded from None
        self.version, self.written = stored.version, began

    async def _stopped(self) -> None:
        """Somebody has changed the record. If this is still the owner, keep what was done."""
        current = await self.engine.record_get(KIND, self.key)
        if current is None:
            return
        theirs = decode(current)
        if theirs.owner != self.bulk.owner:
            return
        self.bulk.state, self.bulk.told, self.bulk.finished_at = theirs.state, "", None
        self.version = current.version
        await self._save(claiming=True)
        self.runner.wake()


def _how(job: Job) -> How:
    if job.status is Status.SCHEDULED:
        return "now"
    return "run" if job.task == WORKFLOW or job.parent is not None else ""
