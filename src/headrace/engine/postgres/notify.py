"""Hearing of work and cancels, and telling others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from headrace.engine.base import CancelSignal, WorkSignal
from headrace.engine.postgres.connection.connection import Connection, Link
from headrace.engine.postgres.sql import query
from headrace.errors import HeadraceError

_RING = query("ring")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
# Other workers hear of freed lanes at most this late; a busy worker frees some at every trip, and
# a notification at each would slow the server down.
RING_SECONDS = 0.02


class Signals:
    """LISTEN and NOTIFY on the channel of one store, over a connection that others use too."""

    def __init__(self, link: Link, *, channel: str) -> None:
        self._link = link
        self._channel = channel
        self._ears: dict[object, tuple[WorkSignal, CancelSignal]] = {}
        self._heard_on: Connection | None = None
        self._lost = asyncio.Event()
        self._healer: asyncio.Task[None] | None = None
        self._ringer: asyncio.Task[None] | None = None
        link.on_open = self._attach

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""
        return self._heard_on is not None and not self._heard_on.is_closed()

    async def listen(self, on_work: WorkSignal, on_cancel: CancelSignal) -> Callable[[], None]:
        """Call back on the event loop until the answered function is called."""
        ear = object()
        self._ears[ear] = (on_work, on_cancel)
        try:
            async with self._link.hold() as connection:
                await self._attach(connection)
        except BaseException:
            del self._ears[ear]
            raise
        if self._healer is None:
            self._healer = asyncio.get_running_loop().create_task(self._heal())

        def stop() -> None:
            self._ears.pop(ear, None)

        return stop

    def ring(self) -> None:
        """Tell all workers soon that jobs are ready. If that fails, their polls find them."""
        if self._ringer is None or self._ringer.done():
            self._ringer = asyncio.get_running_loop().create_task(self._ring())

    async def close(self) -> None:
        """Stop listening. The connection belongs to somebody else."""
        self._ears.clear()
        self._heard_on = None
        for task in (self._healer, self._ringer):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._healer = self._ringer = None

    async def _attach(self, connection: Connection) -> None:
        if self._ears and self._heard_on is not connection:
            await connection.add_listener(self._channel, self._hear)
            connection.add_termination_listener(self._on_loss)
            self._heard_on = connection

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        kind, _, job_id = str(payload).partition(":")
        for on_work, on_cancel in list(self._ears.values()):
            if kind == "cancel":
                on_cancel(job_id)
            else:
                on_work()

    def _on_loss(self, connection: object) -> None:
        if connection is self._heard_on:
            self._heard_on = None
            self._lost.set()

    async def _heal(self) -> None:
        """Listen again after each loss, and have everybody look for what was missed meanwhile."""
        while True:
            await self._lost.wait()
            self._lost.clear()
            pause = FIRST_PAUSE
            while self._ears and not self.listening:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                with contextlib.suppress(HeadraceError):
                    async with self._link.hold() as connection:
                        await self._attach(connection)
            for on_work, _ in list(self._ears.values()):
                on_work()

    async def _ring(self) -> None:
        await asyncio.sleep(RING_SECONDS)
        with contextlib.suppress(HeadraceError):
            await self._link.fetch(_RING)
