"""Cancel children that were replaced when their parent was run again, if that caller died."""

from __future__ import annotations

import logging
import random

import msgspec

from headrace.engine.base import Engine
from headrace.job_tree import REPLACED, ReplacedChildren, cancel_replaced
from headrace.loops.loop import Loop

log = logging.getLogger("headrace.replaced")

BATCH = 50
PAUSE = 30.0


class Replaced(Loop):
    """The process that runs a job again from a stage cancels the children it made since. If it dies
    first, this does so, some seconds later. To do it twice does no harm.
    """

    name = "replaced"

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    async def tick(self) -> float:
        """Complete what was left half done; go on at once while there is more."""
        records = await self.engine.record_list(REPLACED, limit=BATCH)
        for record in records:
            try:
                replaced = msgspec.json.decode(record.body, type=ReplacedChildren)
            except msgspec.MsgspecError:
                log.warning("Record %s/%s cannot be read: deleted", record.kind, record.key)
                await self.engine.record_delete(record.kind, record.key)
                continue
            await cancel_replaced(self.engine, record.key, replaced)
        # Spread, so that many workers do not all ask at once.
        return 0.0 if len(records) == BATCH else PAUSE * random.uniform(0.8, 1.2)  # noqa: S311
