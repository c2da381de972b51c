"""A thread that owns one connection, and the tickets by which others ask it for work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.clock import Clock
from headrace.engine.sqlite.address import Address
from headrace.engine.sqlite.connection import connect, translated
from headrace.errors import EngineUnavailable

T = TypeVar("T")


class Transaction:
    """What an operation works with: a connection inside a transaction, and one moment in time.

    An operation says here what others want to know once it is committed.
    """

    __slots__ = ("cancelling", "connection", "made_ready", "now", "reserved")

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self.connection = connection
        self.now = now
        self.made_ready: set[str] = set()
        # Queues with jobs that were left for others: what a claim finds says nothing of those.
        self.reserved: set[str] = set()
        self.cancelling: list[str] = []


Operation = Callable[[Transaction], T]


class Ticket:
    """One operation and where its answer goes: to an event loop, or to a thread that waits."""

    __slots__ = ("_loop", "_reply", "error", "operation", "value")

    def __init__(
        self,
        operation: Operation[Any],
        loop: asyncio.AbstractEventLoop | None,
        reply: asyncio.Future[Any] | concurrent.futures.Future[Any],
    ) -> None:
        self.operation = operation
        self.value: Any = None
        self.error: BaseException | None = None
        self._loop = loop
        self._reply = reply

    def _answer(self) -> None:
        if self._reply.done():
            return  # whoever asked was cancelled; what was committed stays
        if self.error is None:
            self._reply.set_result(self.value)
        else:
            self._reply.set_exception(self.error)

    @staticmethod
    def answer_all(tickets: list[Ticket]) -> None:
        """Hand out the answers, waking each event loop once."""
        loops: dict[asyncio.AbstractEventLoop, list[Ticket]] = {}
        for ticket in tickets:
            if ticket._loop is None:
                ticket._answer()
            else:
                loops.setdefault(ticket._loop, []).append(ticket)
        for loop, group in loops.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is waiting
                loop.call_soon_threadsafe(_answer_group, group)


def _answer_group(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        ticket._answer()


class ConnectionThread(ABC):
    """Owns one connection; runs what is asked of it in the order it was asked."""

    def __init__(self, address: Address, clock: Clock, *, name: str) -> None:
        self._address = address
        self._clock = clock
        self._inbox: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._accepting = False
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A daemon: what was answered is committed, so a program that forgets to close may end.
        self._thread = threading.Thread(target=self._main, name=f"headrace-{name}", daemon=True)

    async def start(self) -> None:
        """Open the connection; raises if that fails."""
        self._accepting = True
        self._thread.start()
        try:
            await asyncio.wrap_future(self._opened)
        except BaseException:
            self._close_inbox()
            raise

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation and wait for it without blocking the event loop."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[T] = loop.create_future()
        self._submit(Ticket(operation, loop, reply))
        return await reply

    def run_blocking(self, operation: Operation[T]) -> T:
        """Run an operation from a thread that may block."""
        reply: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._submit(Ticket(operation, None, reply))
        return reply.result()

    async def stop(self) -> None:
        """Finish what was accepted and close the connection."""
        self._close_inbox()
        await asyncio.to_thread(self._thread.join)

    def _close_inbox(self) -> None:
        with self._gate:
            if self._accepting:
                self._accepting = False
                self._inbox.put(None)

    def _submit(self, ticket: Ticket) -> None:
        with self._gate:
            if not self._accepting:
                raise self._closed()
            self._inbox.put(ticket)

    def _closed(self) -> EngineUnavailable:
        return EngineUnavailable(f"The engine for {str(self._address)!r} is closed; open it again.")

    def _main(self) -> None:
        try:
            connection = self._open()
        except BaseException as error:  # whatever it is, `start` raises it
            self._opened.set_exception(translated(error, self._address))
            return
        self._opened.set_result(None)
        try:
            self._serve(connection)
        finally:
            connection.close()
            self._close_inbox()
            self._refuse_rest()

    def _open(self) -> sqlite3.Connection:
        connection = connect(self._address)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_rest(self) -> None:
        """Leave nobody waiting for an answer that will not come."""
        with contextlib.suppress(queue.Empty):
            while True:
                ticket = self._inbox.get_nowait()
                if ticket is not None:
                    ticket.error = self._closed()
                    Ticket.answer_all([ticket])

    @abstractmethod
    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Do what has to be done before the first operation."""

    @abstractmethod
    def _serve(self, connection: sqlite3.Connection) -> None:
        """Take tickets from the inbox until None comes."""


class Reader(ConnectionThread):
    """Answers questions, each from one snapshot, without getting in the way of the writer."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = on")

    def _serve(self, connection: sqlite3.Connection) -> None:
        while (ticket := self._inbox.get()) is not None:
            try:
                connection.execute("BEGIN")
                try:
                    ticket.value = ticket.operation(Transaction(connection, self._clock.now()))
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except Exception as error:  # it goes to whoever asked
                ticket.error = translated(error, self._address)
            Ticket.answer_all([ticket])
