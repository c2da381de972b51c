"""The audit log: who changed what, and when. Stored with the jobs, bounded.

A change is written before its response. Enqueues are too frequent for that: they are counted by
caller and task, and written once a second; each job names its caller itself.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.admin.bulk import BulkRecord
from headrace.api_types.responses import AuditEntry, AuditPage
from headrace.app import App
from headrace.engine.bounded_reads import records_of
from headrace.errors import HeadraceError
from headrace.model.ids import new_id
from headrace.server.auth.audit_pages import CHANGE, ENQUEUE, KIND, AuditFilter, read_page
from headrace.server.http.problems import invalid

if TYPE_CHECKING:
    from headrace.server.auth.caller import Caller

log = logging.getLogger("headrace.server")

MOST_RECORDS = 5_000
MOST_PENDING = 10_000
TRIM_EVERY = 250
GROUP = 100
PAGE = 1_000
ENQUEUE_SECONDS = 1.0
SHOWN_IDS = 20
_CURSOR = re.compile(r"([0-9a-f-]{36}):([0-9]{1,4})")


class AuditLog:
    """Writes entries in groups, and reads them back."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._changes: list[AuditEntry] = []
        self._enqueues: dict[tuple[str | None, str, str], AuditEntry] = {}
        self._writing = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None
        # Counted apart: there may be many of one kind for each of the other.
        self._written = {CHANGE: 0, ENQUEUE: 0}

    async def changed(self, caller: Caller, action: str, target: str, **detail: Any) -> None:
        """Write a change that was made. If the engine is away, it is written later."""
        self._changes.append(self._entry(caller, action, target, detail))
        # Bounded, also while the engine is away for long.
        del self._changes[:-MOST_PENDING]
        try:
            await self._write_changes()
        except HeadraceError:
            self._write_later()

    async def background(self, bulk_id: str, bulk: BulkRecord) -> None:
        """Write the one line of a bulk action: when it begins, and again with its result."""
        about = bulk.view(bulk_id)
        result = {"state": about.state, "matched": about.matched, "changed": about.changed}
        entry = AuditEntry(
            at=bulk.made_at,
            action=f"jobs.{bulk.action}",
            target=f"bulk action {bulk_id}",
            who=bulk.who,
            key_id=bulk.key_id,
            user=bulk.user,
            detail={"bulk_id": bulk_id, "filter": about.filter, "cutoff": about.cutoff, **result},
        )
        await self._put(CHANGE, [entry], bulk_id)

    def enqueued(self, caller: Caller, task: str, *ids: str) -> None:
        """Count jobs that were enqueued."""
        group = (caller.key_id, caller.name, task)
        entry = self._enqueues.get(group)
        if entry is None:
            if len(self._enqueues) >= MOST_PENDING:
                return
            detail: dict[str, Any] = {"first_ids": []}
            entry = self._enqueues[group] = self._entry(caller, "jobs.create", task, detail)
            entry.count = 0
        entry.count += len(ids)
        shown = entry.detail["first_ids"]
        shown += ids[: SHOWN_IDS - len(shown)]
        self._write_later()

    async def read(
        self, wanted: AuditFilter | None = None, *, cursor: str | None, limit: int
    ) -> AuditPage:
        """Return a page of entries that match, the newest first. The work is bounded: it may be
        short, and then its cursor is where to go on.
        """
        before: tuple[str, int] | None = None
        if cursor is not None:
            form = _CURSOR.fullmatch(cursor)
            if form is None:
                raise invalid("cursor is not one of ours; copy it whole", field="cursor")
            before = (form[1], int(form[2]))
        await self._app.open()
        return await read_page(
            self._app.engine, wanted or AuditFilter(), before=before, limit=limit
        )

    async def close(self) -> None:
        """Write what is pending."""
        if self._later is not None:
            self._later.cancel()
            await asyncio.gather(self._later, return_exceptions=True)
        try:
            await asyncio.wait_for(self._write_all(), 5)
        except (HeadraceError, TimeoutError) as error:
            if self._changes or self._enqueues:
                log.warning("some audit entries could not be written: %s", error)

    def _entry(
        self, caller: Caller, action: str, target: str, detail: dict[str, Any]
    ) -> AuditEntry:
        return AuditEntry(
            at=self._app.clock.utcnow(),
            action=action,
            target=target,
            who=caller.name,
            key_id=caller.key_id,
            user=caller.user,
            detail=detail,
        )

    def _write_later(self) -> None:
        if self._later is None or self._later.done():
            self._later = asyncio.create_task(self._write_soon(), name="headrace audit")

    async def _write_soon(self) -> None:
        while self._changes or self._enqueues:
            await asyncio.sleep(ENQUEUE_SECONDS)
            try:
                await self._write_all()
            except HeadraceError as error:
                log.warning("audit entries wait for the engine: %s", error)

    async def _write_all(self) -> None:
        await self._write_changes()
        async with self._writing:
            while self._enqueues:
                groups = list(self._enqueues)[:GROUP]
                entries = [self._enqueues.pop(group) for group in groups]
                try:
                    await self._put(ENQUEUE, entries)
                except HeadraceError:
                    for group, entry in zip(groups, entries, strict=True):
                        self._merge(group, entry)
                    raise

    async def _write_changes(self) -> None:
        async with self._writing:
            while self._changes:
                entries = self._changes[:GROUP]
                await self._put(CHANGE, entries)
                del self._changes[: len(entries)]

    def _merge(self, group: tuple[str | None, str, str], entry: AuditEntry) -> None:
        newer = self._enqueues.get(group)
        if newer is not None:
            entry.count += newer.count
        self._enqueues[group] = entry

    async def _put(self, prefix: str, entries: list[AuditEntry], key: str | None = None) -> None:
        await self._app.open()
        await self._app.engine.record_put(
            KIND,
            prefix + (key or new_id()),
            msgspec.json.encode(entries),
            version=0 if key is None else None,
        )
        if self._written[prefix] % TRIM_EVERY == 0:
            await self._trim(prefix)
        self._written[prefix] += 1

    async def _trim(self, prefix: str) -> None:
        keys = [key for key, _ in await self._records(prefix)]
        for key in keys[:-MOST_RECORDS]:
            await self._app.engine.record_delete(KIND, prefix + key)

    async def _records(self, prefix: str) -> list[tuple[str, bytes]]:
        """Return the records of one kind by time, as their keys begin with it."""
        found = await records_of(self._app.engine, KIND, prefix=prefix, page=PAGE)
        return [(record.key.removeprefix(prefix), record.body) for record in found]
