"""The probe of a process that reads a whole store: a server, or `headrace up`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.errors import HeadraceError
from headrace.monitor.metrics.store import StoreMetrics
from headrace.monitor.snapshot import Snapshots
from headrace.task.app_like import AppLike

# Probes are asked every few seconds, and wait for about as long.
ENGINE_SECONDS = 3.0


class StoreProbe:
    """The metrics of all workers together, and whether the engine answers.

    `of_process` says what is wrong with the process itself. Lanes are left out of the metrics:
    their names are made of the arguments of jobs, and probes ask for no key.
    """

    def __init__(self, app: AppLike, of_process: Callable[[], str | None]) -> None:
        self._snapshots = Snapshots(app)
        self._metrics = StoreMetrics(app, self._snapshots)
        self._of_process = of_process

    async def trouble(self) -> str | None:
        """Return what is wrong with the process, or with the engine."""
        if (trouble := self._of_process()) is not None:
            return trouble
        try:
            async with asyncio.timeout(ENGINE_SECONDS):
                await self._snapshots.get()
        except TimeoutError:
            return f"the engine has not answered within {ENGINE_SECONDS:g} s"
        except HeadraceError as error:
            return f"the engine does not answer ({type(error).__name__})"
        return self._of_process()

    async def metrics(self) -> bytes:
        """Return what a server shows, except for lanes."""
        return await self._metrics.text(lanes=False)
