"""Giving up on a server that is silent for too long."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import asyncpg

    Connection = asyncpg.Connection[Any]

# The part of its time after which a call is not an ordinary one and its line is listened to.
UNHEARD = 0.25


class Deadline:
    """For uses of a connection, one at a time. One timer looks after all of them: a timer that is
    made and cancelled for every statement takes longer than all else that is done for it here.

    It ends silence, not slowness: as long as parts of an answer come in, there may be more of them
    than arrive within the time of a call. Invariant: a call that is given up has received
    nothing for three quarters of that time, and for all of it if a part came in after the first
    quarter. Until then it does not listen: ordinary calls pay nothing.
    """

    __slots__ = (
        "_cancels", "_connection", "_listener", "_passed", "_seconds", "_task", "_timer", "_until"
    )  # fmt: skip

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._passed = False
        self._timer: asyncio.TimerHandle | None = None
        # When to check the use that is under way next.
        self._until = 0.0
        self._seconds = 0.0
        self._connection: Connection | None = None
        self._listener: Listener | None = None

    def begin(self, seconds: float, connection: Connection | None = None) -> None:
        """Give the current task a new deadline, replacing any earlier one. It is moved on whenever
        something arrives on the connection, if there is one.
        """
        loop = asyncio.get_running_loop()
        task = self._task = asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self._passed = False
        self._seconds, self._connection = seconds, connection
        self._until = loop.time() + (seconds if connection is None else seconds * UNHEARD)
        if self._listener is not None:
            self._stop_listening()
        if self._timer is None or self._timer.when() > self._until:
            self.forget()
            self._timer = loop.call_at(self._until, self._check)

    def end(self) -> None:
        """It was done in time, or not: nothing is waited for any more."""
        if self._passed and self._task is not None:
            self._task.uncancel()
        self._task, self._passed, self._connection = None, False, None
        if self._listener is not None:
            self._stop_listening()

    def cause_of(self, error: BaseException) -> BaseException:
        """The error that ended it: TimeoutError if it was the deadline that cancelled it."""
        if not self._passed or self._task is None:
            return error
        self._passed = False
        # A cancel from elsewhere counts.
        others = self._task.uncancel() > self._cancels
        return error if others or not isinstance(error, asyncio.CancelledError) else TimeoutError()

    def forget(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._task is None:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._until and self._connection is not None:
            if self._listener is None:
                self._listener = Listener.on(self._connection)
                if self._listener is None:
                    self._connection = None  # it is closed: there is nothing to be heard
                self._until = now + self._seconds * (1 - UNHEARD)
            elif self._listener.heard is not None:
                self._until = self._listener.heard + self._seconds
        if now < self._until:
            self._timer = loop.call_at(self._until, self._check)
        else:
            self._passed = True
            self._task.cancel()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None


class Listener(asyncio.Protocol):
    """Between a connection and its driver for a while: passes everything on, and knows when
    something came in.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.heard: float | None = None
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._driver = cast(asyncio.Protocol, transport.get_protocol())
        transport.set_protocol(self)

    @classmethod
    def on(cls, connection: Connection) -> Listener | None:
        """Listen to a connection, if it is open."""
        # The driver shows neither bytes nor its transport.
        transport: asyncio.Transport | None = connection._transport  # type: ignore[attr-defined]
        return None if transport is None or transport.is_closing() else cls(transport)

    def stop(self) -> None:
        """Leave the driver alone with its connection."""
        # A TLS transport that was closed has let go of everything, and has no protocol any more.
        with contextlib.suppress(AttributeError):
            self._transport.set_protocol(self._driver)

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        self._driver.data_received(data)

    def eof_received(self) -> bool | None:
        return self._driver.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._driver.connection_lost(error)

    def pause_writing(self) -> None:
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        self._driver.resume_writing()
