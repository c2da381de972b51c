"""Errors in series, as people may see them: by fingerprints of what is not hidden."""

from __future__ import annotations

from collections import Counter

import msgspec

from headrace.api_types.series import ErrorInSeries, SeriesView
from headrace.model.job import JobFilter
from headrace.monitor.cached_reads import CachedReads
from headrace.monitor.errors import error_groups, hide
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.service import Service

# Task, type of the error, fingerprint.
Mark = tuple[str, str, str]
SECONDS = 10.0


class SeriesErrors:
    """One of each server: `service.part(SeriesErrors)`.

    Workers count errors by fingerprints of whole messages: they do not know what a server hides.
    Who has such a fingerprint can try what was hidden in the message until it fits. So a server
    tells the fingerprints that `GET /errors` tells, of messages without what is hidden. Those of
    failures that are not kept any more, or were tried again, are not told.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._marks: CachedReads[dict[Mark, str]] = CachedReads(SECONDS)

    async def shown(self, series: SeriesView, caller: Caller) -> SeriesView:
        """Return a series without fingerprints of hidden values."""
        if not any(each.fingerprint for each in series.errors):
            return series
        wanted = caller.narrowed(JobFilter())
        marks = await self._marks.get(wanted, lambda: self._read(wanted, caller))
        counts: Counter[Mark] = Counter()
        for each in series.errors:
            mark = (each.task, each.type, each.fingerprint)
            counts[each.task, each.type, marks.get(mark, "")] += each.count
        errors = [
            ErrorInSeries(task=task, type=error, fingerprint=mark, count=count)
            for (task, error, mark), count in counts.most_common()
        ]
        return msgspec.structs.replace(series, errors=errors)

    async def _read(self, wanted: JobFilter, caller: Caller) -> dict[Mark, str]:
        # What is visible depends on the queues alone, and they are in the filter.
        engine, visible = self._service.app.engine, Reach(self._service, caller).visible
        found = await error_groups(engine, wanted, visible=visible)
        groups = [(each.task, each.error_type, each.fingerprint, each) for each in found.groups]
        await hide(engine, found, self._service.answers.error)
        return {(task, error, mark): each.fingerprint for task, error, mark, each in groups}
