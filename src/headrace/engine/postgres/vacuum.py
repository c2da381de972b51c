"""Clearing rows away that jobs have left behind, while a large backlog is being worked off."""

from __future__ import annotations

import asyncio
import contextlib

from headrace.engine.postgres.connection.connection import Link
from headrace.engine.postgres.sql import query
from headrace.errors import HeadraceError

_TIDY = query("tidy")

# The server looks for work of this kind once a minute; in that time a fast worker leaves a million
# rows behind, and each claim steps over all of them. Measured: a backlog of a million jobs was
# worked off at 21,000 jobs/s without this and at 33,000 with it.
EVERY_JOBS = 100_000


class Tidy:
    """Counts what was claimed here and has the server clear up now and then."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._claimed = 0
        self._task: asyncio.Task[None] | None = None

    def count(self, claimed: int) -> None:
        """Tell how many jobs have just been claimed."""
        self._claimed += claimed
        if self._claimed >= EVERY_JOBS and (self._task is None or self._task.done()):
            self._claimed = 0
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop what is under way; nothing is lost by that."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        with contextlib.suppress(HeadraceError):
            await self._link.fetch(_TIDY)
