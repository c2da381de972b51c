"""Being notified of work and cancels, and notifying others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from headrace.engine.base import CancelSignal, WorkSignal
from headrace.engine.postgres.connection.connection import Link
from headrace.engine.postgres.connection.connector import Connection
from headrace.engine.postgres.sql import sql
from headrace.errors import EngineUnavailable, HeadraceError

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
# Other workers are notified of freed lanes at most this late; a busy worker frees some at every
# exchange, and a notification at each would slow the server down.
NOTIFY_SECONDS = 0.02
# A connection that only listens would not notice that its server is gone or was left.
CHECK_SECONDS = 10.0


class Signals:
    """LISTEN and NOTIFY on the channel of one store, over a connection that others use too, or over
    one of its own past a pooler. Behind a pooler alone nobody listens: workers poll.
    """

    def __init__(self, link: Link, own: Link | None = None) -> None:
        self._link = link
        self._own = own
        self._channel = link.address.schema
        self._listeners: dict[object, tuple[WorkSignal, CancelSignal]] = {}
        self._listening_on: Connection | None = None
        self._lost = asyncio.Event()
        self._listen_again: asyncio.Task[None] | None = None
        self._notifier: asyncio.Task[None] | None = None
        (own or link).on_open = self._attach

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""
        return self._listening_on is not None and not self._listening_on.is_closed()

    async def listen(self, on_work: WorkSignal, on_cancel: CancelSignal) -> Callable[[], None]:
        """Call back on the event loop until the returned function is called."""
        listener = object()
        self._listeners[listener] = (on_work, on_cancel)
        try:
            await self._look_after()
        except EngineUnavailable:
            if self._own is None:
                del self._listeners[listener]
                raise
            self._lost.set()  # jobs go another way, and are found by polls
        except BaseException:
            del self._listeners[listener]
            raise
        if self._listen_again is None:
            self._listen_again = asyncio.get_running_loop().create_task(self._keep_listening())

        def stop() -> None:
            self._listeners.pop(listener, None)

        return stop

    def notify_soon(self) -> None:
        """Notify all workers soon that jobs are ready. If that fails, their polls find them."""
        if self._notifier is None or self._notifier.done():
            self._notifier = asyncio.get_running_loop().create_task(self._notify())

    async def close(self) -> None:
        """Stop listening. The connection is shared, and stays open."""
        self._listeners.clear()
        self._listening_on = None
        for task in (self._listen_again, self._notifier):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._listen_again = self._notifier = None

    async def _look_after(self) -> None:
        async with (self._own or self._link).hold() as connection:
            await self._attach(connection)
            if self._own is not None:
                await connection.execute("SELECT")

    async def _attach(self, connection: Connection) -> None:
        link = self._own or self._link
        if link.pooled and link.address.pooler != "session":
            return
        if self._listeners and self._listening_on is not connection:
            await connection.add_listener(self._channel, self._notified)
            connection.add_termination_listener(self._on_loss)
            self._listening_on = connection

    def _notified(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        kind, _, job_id = str(payload).partition(":")
        for on_work, on_cancel in list(self._listeners.values()):
            if kind == "cancel":
                on_cancel(job_id)
            else:
                on_work()

    def _on_loss(self, connection: object) -> None:
        if connection is self._listening_on:
            self._listening_on = None
            self._lost.set()

    async def _keep_listening(self) -> None:
        """Listen again after each loss, and report work then: some may have been missed."""
        while True:
            if self._own is not None:
                await self._wait_and_check()
            await self._lost.wait()
            self._lost.clear()
            pause = FIRST_PAUSE
            while self._listeners and not self.listening:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                with contextlib.suppress(HeadraceError):
                    await self._look_after()
            for on_work, _ in list(self._listeners.values()):
                on_work()

    async def _wait_and_check(self) -> None:
        """Wait until the connection for signals is lost, and see now and then that it is not."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._lost.wait()
            except TimeoutError:
                with contextlib.suppress(HeadraceError):
                    await self._look_after()

    async def _notify(self) -> None:
        await asyncio.sleep(NOTIFY_SECONDS)
        with contextlib.suppress(HeadraceError):
            await self._link.fetch(sql.notify_work)
