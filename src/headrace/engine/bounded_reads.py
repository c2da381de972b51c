"""Reading many jobs whose results may be long, or many records: in parts of bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from headrace.engine.base import Records, Viewing
from headrace.model.job import Job
from headrace.model.views import Record

MOST_JOBS = 500
# What is asked for at once. If the line breaks, no more than this has to be asked for again.
PART_BYTES = 4 * 1_048_576
# What `get_part` reads by the connection of the other verbs: they hardly notice so much.
SHORT_BYTES = 262_144
MOST_RECORDS = 200


async def parts(engine: Viewing, ids: Sequence[str]) -> AsyncIterator[list[Job]]:
    """All of these jobs that exist, however many and however long."""
    for start in range(0, len(ids), MOST_JOBS):
        rest = list(ids[start : start + MOST_JOBS])
        while rest:
            jobs, rest = await engine.get_part(rest, PART_BYTES)
            yield jobs


async def records_of(
    engine: Records,
    kind: str,
    *,
    prefix: str = "",
    page: int = MOST_RECORDS,
    most: int | None = None,
) -> list[Record]:
    """All records of a kind by key, however many. For kinds of which there are not too many.

    With `prefix` those whose key begins with it and is longer. `page` are read at once; no further
    ones when there are `most`.
    """
    found: list[Record] = []
    after = prefix
    while True:
        some = await engine.record_list(kind, after=after, limit=page)
        ours = [record for record in some if record.key.startswith(prefix)]
        found += ours
        if len(ours) < page or (most is not None and len(found) >= most):
            return found
        after = ours[-1].key
