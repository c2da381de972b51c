"""Verbs for many jobs: list, count, search, and bulk actions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.api_types.bulk import BulkAction, BulkAnswer, BulkView
from headrace.api_types.filters import filter_fields
from headrace.api_types.job import JobList
from headrace.api_types.requests import BulkRequest, FilterRequest
from headrace.client.base import BaseClient
from headrace.errors import InvalidSetting
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter
from headrace.model.times import in_utc
from headrace.model.views import JobCount, JobPage

BULK_TIMEOUT = 600.0


class ManyJobsApi(BaseClient):
    """Many jobs on a server."""

    async def list(
        self,
        filter: JobFilter | None = None,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        fingerprint: str | None = None,
        search: Sequence[str] = (),
    ) -> JobPage:
        """A page of jobs, newest first; `brief` without arguments, result, meta and attempts.

        `search` are texts that all have to occur in a job, or `args.name=value`. It looks for about
        a second: a page may be short, and its cursor is where to go on. `fingerprint` likewise.
        """
        if not 1 <= limit <= 1_000:
            raise InvalidSetting(f"limit must be between 1 and 1000, got {limit}")
        params = filter_fields(filter or JobFilter(), fingerprint) | {"limit": limit}
        if cursor is not None:
            params["cursor"] = parse_id(cursor)
        if brief:
            params["fields"] = "row"
        if search:
            params["search"] = [*search]
        page = await self._get("/jobs", JobList, "a list of jobs", params)
        return JobPage([job.to_job() for job in page.jobs], page.cursor, page.searched_to)

    async def count(
        self, filter: JobFilter | None = None, *, fingerprint: str | None = None
    ) -> JobCount:
        """Count the jobs that match among the newest 10,000 of the statuses asked for."""
        params = filter_fields(filter or JobFilter(), fingerprint)
        return await self._get("/jobs/count", JobCount, "a number of jobs", params)

    async def bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkAnswer:
        """Cancel or retry every job that matches and was made before `cutoff`, a time that is now
        by default. With `dry_run` only count them, by task, queue and error, up to 10,000.
        """
        asked = _request(action, filter, fingerprint, cutoff, reason)
        asked.dry_run = dry_run
        return await self._send(
            "POST",
            "/jobs/bulk",
            BulkAnswer,
            asked,
            idempotent=dry_run,
            read_timeout=BULK_TIMEOUT,
        )

    async def start_bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        reason: str | None = None,
    ) -> BulkView:
        """The same in the background: a server does it, goes on after a crash, and can be asked
        how far it is.
        """
        asked = _request(action, filter, fingerprint, cutoff, reason)
        asked.background = True
        return await self._send("POST", "/jobs/bulk", BulkView, asked)

    async def bulk_actions(self) -> Sequence[BulkView]:
        """The actions that servers do or have done, the newest first."""
        return await self._list("/bulk", "bulk", BulkView)

    async def bulk_action(self, bulk_id: str) -> BulkView:
        """One of them, with how far it is."""
        return await self._get(f"/bulk/{parse_id(bulk_id)}", BulkView, "a bulk action")

    async def stop_bulk(self, bulk_id: str) -> BulkView:
        """Stop one. Up to 500 jobs that it is changing at this moment may still be changed."""
        return await self._send("DELETE", f"/bulk/{parse_id(bulk_id)}", BulkView, None)

    async def resume_bulk(self, bulk_id: str) -> BulkView:
        """Let a server go on with one that was stopped, or has failed."""
        return await self._send("POST", f"/bulk/{parse_id(bulk_id)}/resume", BulkView)


def _request(
    action: BulkAction,
    filter: JobFilter,
    fingerprint: str | None,
    cutoff: datetime | None,
    reason: str | None,
) -> BulkRequest:
    wanted = FilterRequest(**filter_fields(filter, fingerprint))
    asked = BulkRequest(action=action, filter=wanted)
    if cutoff is not None:
        asked.cutoff = in_utc(cutoff)
    if reason is not None:
        asked.reason = reason
    return asked
