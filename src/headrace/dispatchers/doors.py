"""Two ways into the engine at once, where that is faster and keeps the order."""

from __future__ import annotations

import asyncio

from headrace.dispatchers.host import Host
from headrace.dispatchers.inserting import insert_all
from headrace.dispatchers.intake import Refused, Sorted
from headrace.engine.base import Engine
from headrace.engine.open import open_engine

# Below this many jobs a second call costs more than it saves.
LEAST = 500


class Doors:
    """Stores batches. On PostgreSQL a large one goes over two connections at the same time.

    While one call is being encoded or made durable the server works on the other. Jobs of one
    partition always go the same way, so that they are stored in its order; messages without a
    partition go one way. Other engines take one call at a time anyway.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._second: Engine | None = None

    async def insert(self, batch: Sorted) -> tuple[int, list[Refused]]:
        """Answers how many jobs are new, and the messages that the engine would not take."""
        halves = self._halves(batch)
        if halves is None:
            return await insert_all(self._host.engine, batch)
        one, other = halves
        answers = await asyncio.gather(
            insert_all(self._host.engine, one),
            self._insert_second(other),
            # Both have to be over before anything is tried again.
            return_exceptions=True,
        )
        created = 0
        unfit: list[Refused] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            created += answer[0]
            unfit += answer[1]
        return created, unfit

    async def close(self) -> None:
        """Close what was opened here."""
        second, self._second = self._second, None
        if second is not None:
            await second.close()

    def _halves(self, batch: Sorted) -> tuple[Sorted, Sorted] | None:
        if len(batch.jobs) < LEAST or self._host.engine.name != "postgres":
            return None
        halves = (Sorted([], [], [], []), Sorted([], [], [], []))
        for job, message in zip(batch.jobs, batch.sources, strict=True):
            half = halves[(message.partition or 0) % 2]
            half.jobs.append(job)
            half.sources.append(message)
        return halves if all(half.jobs for half in halves) else None

    async def _insert_second(self, batch: Sorted) -> tuple[int, list[Refused]]:
        if self._second is None:
            second = open_engine(self._host.settings.url, clock=self._host.clock)
            await second.open()
            self._second = second
        return await insert_all(self._second, batch)
