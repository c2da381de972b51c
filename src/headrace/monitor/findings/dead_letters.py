"""Dead letters: messages that made no job, and wait for somebody."""

from __future__ import annotations

import msgspec

from headrace.engine.base import Records

KIND = "dead-letter"
# Letters may be large, so that few are read at once; beyond so many nobody needs to know exactly.
PAGE = 50
MOST = 1_000


class DeadLetterCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are; not `complete` if there are more."""

    count: int = 0
    complete: bool = True


async def count_letters(engine: Records, most: int) -> DeadLetterCount:
    """Count up to one more than `most`, in bounded steps."""
    count, after = 0, ""
    limit = min(most, MOST - 1) + 1
    while count < limit:
        found = await engine.record_list(KIND, after=after, limit=min(PAGE, limit - count))
        count += len(found)
        if len(found) < min(PAGE, limit - count + len(found)):
            return DeadLetterCount(count=count)
        after = found[-1].key
    return DeadLetterCount(count=count, complete=False)
