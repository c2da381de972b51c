"""The engine over several stores: the whole contract, each verb in the store or stores that it is
about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from headrace.clock import Clock
from headrace.engine.several.control import Steering
from headrace.engine.several.insert import Producing
from headrace.engine.several.lifecycle import Lifecycle
from headrace.engine.several.records import Records
from headrace.engine.several.store.member import Member
from headrace.engine.several.upkeep import Upkeep
from headrace.engine.several.views import Viewing
from headrace.engine.several.worker import Working


class SeveralStores(Lifecycle, Producing, Working, Upkeep, Steering, Viewing, Records):
    """Queues spread over several stores by their names. `others` are the stores of patterns."""

    def __init__(self, default: Member, others: Mapping[str, Member], *, clock: Clock) -> None:
        super().__init__(default, others, clock=clock)
        self._recorded = set()
        self.start()

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await super().open()
