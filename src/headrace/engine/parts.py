"""Reading many jobs whose results may be long: in parts, bounded by their number and by bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from headrace.engine.base import Viewing
from headrace.model.job import Job

MOST_JOBS = 500
# What is asked for at once. If the line breaks, no more than this has to be asked for again.
PART_BYTES = 4 * 1_048_576
# What `get_part` reads by the connection of the other verbs: they hardly notice so much.
SHORT_BYTES = 262_144


async def parts(engine: Viewing, ids: Sequence[str]) -> AsyncIterator[list[Job]]:
    """All of these jobs that exist, however many and however long."""
    for start in range(0, len(ids), MOST_JOBS):
        rest = list(ids[start : start + MOST_JOBS])
        while rest:
            jobs, rest = await engine.get_part(rest, PART_BYTES)
            yield jobs
