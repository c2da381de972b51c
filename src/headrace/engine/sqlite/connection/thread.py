"""A thread that owns one connection, and works for others by the tickets that they give it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import queue
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

from headrace.clock import Clock
from headrace.engine.sqlite.connection import forks
from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.opened_file import BesideLost, Identity, OpenedFile, identity
from headrace.engine.sqlite.connection.opening import connect, translated
from headrace.engine.sqlite.connection.request import ThreadRequest
from headrace.errors import EngineError, EngineUnavailable, StoreReplaced

log = logging.getLogger("headrace.engine")

T = TypeVar("T")

# How long a look at the file counts for whoever is about to read or write. What was committed is
# looked at each time, before anybody is told.
LOOK_SECONDS = 0.25
# How long another file has to be in place before it is opened: it may still be being copied.
STEADY_SECONDS = 1.0
OPEN_TRIES = 5
UNKNOWN: Mapping[str, float] = {}


class Transaction:
    """What an operation works with: a connection inside a transaction, and one moment in time.

    An operation says here what others want to know once it is committed.
    """

    __slots__ = ("cancelling", "connection", "made_ready", "now", "reserved", "used", "used_lately")

    def __init__(
        self, connection: sqlite3.Connection, now: float, used_lately: Mapping[str, float] = UNKNOWN
    ) -> None:
        self.connection = connection
        # Times are shown and asked for in microseconds: what is kept has to equal what is shown.
        self.now = round(now, 6)
        # Queues that are known to be marked as used, and when; and those that this one has marked.
        self.used_lately = used_lately
        self.used: set[str] = set()
        self.made_ready: set[str] = set()
        # Queues with jobs that were left for others: what a claim finds says nothing of those.
        self.reserved: set[str] = set()
        self.cancelling: list[str] = []


Operation = Callable[[Transaction], T]


class ConnectionThread(ABC):
    """Owns one connection; runs what is asked of it in the order it was asked."""

    def __init__(self, address: SqliteAddress, clock: Clock, *, name: str) -> None:
        # The folder of the program may change; the file stays the one that was meant first.
        self._address = address.absolute()
        self._clock = clock
        # None: look whether to rest, or else end.
        self._inbox: queue.SimpleQueue[ThreadRequest | None] = queue.SimpleQueue()
        self._rests: deque[forks.ForkPause] = deque()
        self._at_rest = False
        self._gate = threading.Lock()
        self._accepting = False
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._file: OpenedFile | None = None
        self._looked_at = 0.0
        # Whether all that is in a log which is lost, or about to be, was brought to its file.
        self._rescued = False
        # Another file in place of ours, and since when it is there.
        self._successor: tuple[Identity, float] | None = None
        # A daemon: what was answered is committed, so a program that forgets to close may end.
        self._thread = threading.Thread(target=self._main, name=f"headrace-{name}", daemon=True)

    async def start(self) -> None:
        """Open the connection; raises if that fails."""
        self._accepting = True
        # Under way: one who is cancelled here takes nothing away from the thread, which has to say
        # it, and then finds its inbox closed and ends.
        self._opened.set_running_or_notify_cancel()
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
        self._submit(ThreadRequest(operation, loop, reply))
        return await reply

    def run_blocking(self, operation: Operation[T]) -> T:
        """Run an operation from a thread that may block."""
        reply: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._submit(ThreadRequest(operation, None, reply))
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

    def _submit(self, request: ThreadRequest) -> None:
        with self._gate:
            if not self._accepting:
                raise self._closed()
            self._inbox.put(request)

    def _closed(self) -> EngineUnavailable:
        return EngineUnavailable(f"The engine for {str(self._address)!r} is closed; open it again.")

    def _main(self) -> None:
        forks.enter(self)
        try:
            self._use_connection()
        finally:
            forks.leave(self)

    def _use_connection(self) -> None:
        try:
            connection = self._open()
        except BaseException as error:  # whatever it is, `start` raises it
            self._opened.set_exception(translated(error, self._address))
            return
        self._opened.set_result(None)
        self._connection = connection
        try:
            self._serve()
        finally:
            self._connection.close()
            self._close_inbox()
            self._refuse_rest()

    def _open(self, *, create: bool = True) -> sqlite3.Connection:
        path = self._address.path
        for _ in range(OPEN_TRIES):
            before = None if path is None else identity(str(path))
            connection = connect(self._address, create=create)
            try:
                self._prepare(connection)
                if path is None:
                    return connection
                opened = identity(str(path))
                if opened is not None and before in (opened, None):
                    self._file = OpenedFile(path, opened)
                    self._looked_at = time.monotonic()
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()  # replaced in this very moment; what is there now may be had
        raise StoreReplaced(
            f"The database {str(self._address)!r} was replaced again and again while it was opened."
        )

    # --- while the process forks

    def is_alive(self) -> bool:
        """Whether the thread has begun and not ended."""
        return self._thread.is_alive()

    def is_current(self) -> bool:
        """Whether this is called from the thread."""
        return threading.current_thread() is self._thread

    def pause_for_fork(self, rest: forks.ForkPause) -> None:
        """Let the thread rest after what is under way."""
        self._rests.append(rest)
        self._inbox.put(None)

    def _rested(self) -> bool:
        """After a None. Whether it asked for a rest, which is over now; if not, it is the end."""
        if not self._rests:
            return False
        self._give_way()
        self._rests.popleft()
        return True

    def _give_way(self) -> bool:
        """Rest, if somebody wants to fork now. Answers whether that was so."""
        wanted = next((rest for rest in self._rests if not rest.over), None)
        if wanted is None:
            return False
        if self._file is None:  # in memory: closed, it would be gone
            wanted.take()
            return True
        self._at_rest, self._looked_at = True, 0.0
        self._connection.close()
        wanted.take()
        # If this fails, whoever asks next is told, and it is tried again.
        with contextlib.suppress(OSError, sqlite3.Error, EngineError):
            self._look_again()
        return True

    def _reopen(self, file: OpenedFile) -> None:
        """Open the file again after a rest."""
        if identity(file.path) is None:
            file.check()
        self._connection = self._open(create=False)
        self._at_rest = False

    # --- whether the file is still the one

    def _check_file(self) -> None:
        """Raise `StoreReplaced` unless the path names the file that is open."""
        if self._file is not None:
            self._looked_at = 0.0
            try:
                self._file.check()
            except BesideLost:
                if self._file.log_is_gone():
                    self._rescue()
                raise
            except StoreReplaced:
                self._leave(self._file)
                raise
            self._looked_at = time.monotonic()

    def _look_again(self) -> bool:
        """Make sure that the connection is to the file that the path names, if nobody has looked
        lately. Answers whether another was opened, and raises `StoreReplaced` while there is none.
        """
        if self._file is None or time.monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        if self._at_rest:
            self._reopen(self._file)
            return True
        try:
            self._check_file()
        except BesideLost:
            raise  # another connection, with the log of another time, would ruin the file
        except StoreReplaced:
            if not self._rescued or self._successor is None:
                raise
            if time.monotonic() - self._successor[1] < STEADY_SECONDS:
                raise
            self._replace_connection()
            return True
        self._successor, self._rescued = None, False
        return False

    def _leave(self, file: OpenedFile) -> None:
        """Make way for another file, if one is in the place of ours."""
        found = identity(file.path)
        if found is None or found == file.opened:
            self._successor = None
        elif self._successor is None or self._successor[0] != found:
            self._successor = (found, time.monotonic())
        # Ours may have been moved, and does not have all that was acknowledged without its log.
        if self._successor is not None and self._rescue():
            with contextlib.suppress(OSError):
                file.remove_beside()

    def _replace_connection(self) -> None:
        try:
            connection = self._open(create=False)
        except (OSError, sqlite3.Error, EngineError) as error:
            raise StoreReplaced(
                f"The database {str(self._address)!r} was replaced while it was in use, by a file "
                f"that cannot be used. {translated(error, self._address)}"
            ) from error
        # SQLite sees that the old file has no name, and leaves the log of the new one alone.
        old, self._connection = self._connection, connection
        with contextlib.suppress(sqlite3.Error):
            old.close()
        self._successor, self._rescued = None, False
        log.warning(
            "%s: the database %s was replaced while it was in use; going on with the new file",
            self._thread.name,
            self._address,
        )

    def _rescue(self) -> bool:
        """Bring what is in the log to the file, once. False: not all of it, somebody reads."""
        if not self._rescued:
            with contextlib.suppress(sqlite3.Error):
                execute = self._connection.execute
                [(_, total, done)] = execute("PRAGMA wal_checkpoint(passive)").fetchall()
                self._rescued = total == done
        return self._rescued

    def _refuse_rest(self) -> None:
        """Leave nobody waiting for an answer that will not come."""
        with contextlib.suppress(queue.Empty):
            while True:
                request = self._inbox.get_nowait()
                if request is not None:
                    request.error = self._closed()
                    ThreadRequest.answer_all([request])

    @abstractmethod
    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Do what has to be done before the first operation."""

    @abstractmethod
    def _serve(self) -> None:
        """Take tickets from the inbox until None comes."""


class ReaderThread(ConnectionThread):
    """Answers questions, each from one snapshot, without getting in the way of the writer."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = on")
        connection.execute("PRAGMA user_version").fetchall()  # opens the log

    def _serve(self) -> None:
        while (request := self._inbox.get()) is not None or self._rested():
            if request is None:
                continue
            try:
                self._look_again()
                connection = self._connection
                connection.execute("BEGIN")
                try:
                    request.value = request.operation(Transaction(connection, self._clock.now()))
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                self._check_file()
            except Exception as error:  # it goes to whoever asked
                request.error = translated(error, self._address)
            ThreadRequest.answer_all([request])
