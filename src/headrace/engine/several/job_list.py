"""Pages of jobs of several stores as one page."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.job import Job
from headrace.model.views import JobPage


def merged_page(pages: Sequence[JobPage], limit: int) -> JobPage:
    """Return one page by descending id, of pages that began at the same cursor.

    Invariant: no job of any store between the old and the new cursor is left out. A store has shown
    all down to its own cursor, or to its end; so the page ends at the newest of these cursors.
    What another store has shown below that is asked for again with the next page.
    """
    reached = max((page.cursor for page in pages if page.cursor is not None), default="")
    found: dict[str, Job] = {}
    for page in pages:
        found |= {job.id: job for job in page.jobs if job.id >= reached}
    ids = sorted(found, reverse=True)
    if len(ids) > limit:
        return JobPage([found[each] for each in ids[:limit]], ids[limit - 1])
    return JobPage([found[each] for each in ids], reached or None)
