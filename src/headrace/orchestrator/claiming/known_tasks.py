"""Tells the engine which tasks a worker can run, when that has changed since it registered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from headrace.errors import HeadraceError
from headrace.model.worker import WorkerInfo
from headrace.orchestrator.claiming.unknown_tasks import UnknownTasks
from headrace.task.app_like import AppLike


class KnownTasks:
    """What the engine is told: the tasks of the App, without those whose keys are not here. `info`
    returns what the worker is registered with, `on_told` is called when that has changed.
    """

    def __init__(
        self,
        host: AppLike,
        *,
        info: Callable[[], WorkerInfo],
        on_told: Callable[[WorkerInfo], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._host = host
        self._info = info
        self._on_told = on_told
        self._telling: asyncio.Future[None] | None = None
        self.unknown = UnknownTasks(
            tasks=host.tasks,
            built_in=host.built_in,
            sealing=host.sealing,
            offered=lambda task: task in (info().tasks or ()),
            on_change=lambda: loop.call_soon_threadsafe(self.tell),
        )

    def names(self) -> tuple[str, ...]:
        """Return the tasks that this worker can run, as far as it has the keys."""
        names, others = self._host.task_names(), self.unknown.not_for_us
        return tuple(name for name in names if name not in others) if others else names

    def tell(self) -> None:
        """Tell the engine if something has changed: tasks were registered, or cannot be run."""
        names = self.names()
        if names != self._info().tasks and (self._telling is None or self._telling.done()):
            self._telling = asyncio.ensure_future(self._tell(names))

    def stop(self) -> None:
        if self._telling is not None:
            self._telling.cancel()

    async def _tell(self, names: tuple[str, ...]) -> None:
        info = msgspec.structs.replace(self._info(), tasks=names)
        with contextlib.suppress(HeadraceError):  # tried again at the next renewal
            await self._host.engine.know(info)
            if self._info().id == info.id:  # otherwise it has registered again with them
                self._on_told(info)
