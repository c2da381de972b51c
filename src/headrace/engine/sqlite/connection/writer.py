"""The one writer: groups what waits into one transaction, and tells listeners what it changed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Sized

from headrace.clock import Clock
from headrace.engine.base import CancelSignal, WorkSignal
from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.migrate import prepare
from headrace.engine.sqlite.connection.opened_file import OpenedFile
from headrace.engine.sqlite.connection.opening import (
    BUSY_SECONDS,
    error_code,
    is_full,
    translated,
)
from headrace.engine.sqlite.connection.request import ThreadRequest
from headrace.engine.sqlite.connection.thread import ConnectionThread, Transaction
from headrace.engine.sqlite.sql import sql

BATCH_LIMIT = 500
# More queues than this are not remembered as used: there may be any number of them.
USED_LIMIT = 1_000
# How often other processes' commits are looked for: often while things happen, else rarely.
POLL_BUSY_SECONDS = 0.002
POLL_IDLE_SECONDS = 0.015
IDLE_AFTER_SECONDS = 1.0
UNSEEN = -1
# Between two tries to begin while another process writes.
TURN_SECONDS = (0.0002, 0.0015)


class CommitListener:
    """Somebody who wants to know about ready jobs and cancel requests, on their event loop."""

    def __init__(self, on_work: WorkSignal, on_cancel: CancelSignal) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_work = on_work
        self._on_cancel = on_cancel
        self._ended = False

    def end(self) -> None:
        """Call nothing any more."""
        self._ended = True

    def signal(self, work: bool, cancelling: Iterable[str]) -> None:
        """Tell the event loop, from the writer's thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens
            self._loop.call_soon_threadsafe(self._deliver, work, tuple(cancelling))

    def _deliver(self, work: bool, cancelling: tuple[str, ...]) -> None:
        if work and not self._ended:
            self._on_work()
        for job_id in cancelling:
            if not self._ended:
                self._on_cancel(job_id)


class WriterThread(ConnectionThread):
    """Owns the write connection.

    Everything that waits is run in one `BEGIN IMMEDIATE` … `COMMIT`, each operation in a savepoint
    of its own. Nobody is answered before the commit, nor before the file was seen to be the one
    that the path names after it, so an answer means: it is on disk.
    """

    # Set before the thread starts.
    may_migrate = True
    _seen_version = 0
    _seen_resumed = 0.0
    _changed_at = 0.0
    _polled_at = 0.0
    _trouble = False
    _announced: frozenset[tuple[str, int]] = frozenset()
    _listeners: tuple[CommitListener, ...] = ()

    def __init__(self, address: SqliteAddress, clock: Clock, *, name: str) -> None:
        super().__init__(address, clock, name=name)
        # Queues that are marked as used in this file, and when that was done.
        self._used_lately: dict[str, float] = {}

    @property
    def listening(self) -> bool:
        """Whether somebody listens and the thread is there to tell them."""
        return bool(self._listeners) and self._thread.is_alive()

    def listen(self, on_work: WorkSignal, on_cancel: CancelSignal) -> Callable[[], None]:
        """Add a listener; answers the function that removes it."""
        listener = CommitListener(on_work, on_cancel)

        def end() -> None:
            listener.end()
            with self._gate:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        with self._gate:
            self._listeners = (*self._listeners, listener)
        # The thread may be asleep without a limit: wake it, so that it begins to poll.
        self._submit(ThreadRequest(lambda transaction: None, None, concurrent.futures.Future()))
        return end

    def _prepare(self, connection: sqlite3.Connection) -> None:
        prepare(connection, self._address, migrate=self.may_migrate)
        self._used_lately.clear()
        connection.execute("PRAGMA busy_timeout = 0")  # `begin_writing` does the waiting
        self._seen_version = _data_version(connection)
        self._seen_resumed = _resumed(connection)

    def _reopen(self, file: OpenedFile) -> None:
        super()._reopen(file)
        self._seen_version = UNSEEN  # others may have written meanwhile

    def _serve(self) -> None:
        open_for_more = True
        while open_for_more:
            requests: list[ThreadRequest] = []
            ending = False
            try:
                request = self._inbox.get(timeout=self._patience())
                while request is not None and len(requests) < BATCH_LIMIT:
                    requests.append(request)
                    request = self._inbox.get_nowait()
                if request is not None:
                    requests.append(request)
                else:
                    ending = True
            except queue.Empty:
                pass
            if requests:
                self._commit(requests)
            if ending:
                open_for_more = self._rested()
            if self._listeners and time.monotonic() - self._polled_at >= POLL_BUSY_SECONDS:
                self._poll()

    # --- group commit

    def _commit(self, requests: list[ThreadRequest]) -> None:
        """Run tickets in one transaction and answer them all."""
        try:
            self._look_again()
            self._begin()
            transactions = [
                self._run(self._connection, request, len(requests)) for request in requests
            ]
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
            self._check_file()
        except Exception as error:  # it goes to everybody who asked
            # Nothing of this batch is on disk, or on one that nobody finds again.
            with contextlib.suppress(sqlite3.Error):  # it may be closed, after a fork
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if is_full(error) and len(requests) > 1:
                # One operation that is too large must not take the small ones with it.
                for request in requests:
                    self._commit([request])
                return
            for request in requests:
                request.value, request.error = None, translated(error, self._address)
            ThreadRequest.answer_all(requests)
        else:
            ThreadRequest.answer_all(requests)
            self._announce(transactions)
            for one in transactions:
                if one.used:
                    self._remember_used(one)

    def _remember_used(self, transaction: Transaction) -> None:
        """Not before it is committed: what is rolled back has marked nothing."""
        if len(self._used_lately) > USED_LIMIT:
            self._used_lately.clear()
        self._used_lately.update(dict.fromkeys(transaction.used, transaction.now))

    def _begin(self) -> None:
        """Begin to write as soon as no other process does, and let others fork meanwhile."""
        limit = time.monotonic() + BUSY_SECONDS
        while not begin_writing(self._connection, limit, self._rests):
            if self._give_way():
                self._look_again()

    def _run(
        self, connection: sqlite3.Connection, request: ThreadRequest, company: int
    ) -> Transaction:
        """Run one ticket so that, if it fails, nothing of it stays."""
        transaction = Transaction(connection, self._clock.now(), self._used_lately)
        request.value, request.error = None, None
        if company > 1:
            connection.execute("SAVEPOINT operation")
        try:
            request.value = request.operation(transaction)
        except Exception as error:
            if is_full(error) or not connection.in_transaction:
                raise  # SQLite has given up the whole transaction, or is about to
            connection.execute("ROLLBACK TO operation" if company > 1 else "ROLLBACK")
            request.error = translated(error, self._address)
            transaction = Transaction(connection, transaction.now)
        if company > 1:
            connection.execute("RELEASE operation")
        return transaction

    # --- signals

    def _announce(self, transactions: list[Transaction]) -> None:
        if not self._listeners:
            return
        work = any(one.made_ready for one in transactions)
        cancelling = [job_id for one in transactions for job_id in one.cancelling]
        if work or cancelling:
            for listener in self._listeners:
                listener.signal(work, cancelling)

    def _patience(self) -> float | None:
        if not self._listeners:
            return None
        quiet = time.monotonic() - self._changed_at
        return POLL_BUSY_SECONDS if quiet < IDLE_AFTER_SECONDS else POLL_IDLE_SECONDS

    def _poll(self) -> None:
        """Look for commits of other processes; those of this connection do not count as news."""
        self._polled_at = time.monotonic()
        if not self._poll_file():
            return
        connection = self._connection
        try:
            version = _data_version(connection)
            if version == self._seen_version:
                return
            resumed = _resumed(connection)
            [(ready,)] = connection.execute(sql.ready_exists).fetchall()
            cancelling = frozenset(connection.execute(sql.cancelling).fetchall())
        except sqlite3.Error:
            return  # the next poll tries again, and finds nothing of this marked as seen
        self._seen_version = version
        self._changed_at = self._polled_at
        work, self._seen_resumed = bool(ready) or resumed != self._seen_resumed, resumed
        news = [job_id for job_id, _ in cancelling - self._announced]
        self._announced = cancelling
        if work or news:
            for listener in self._listeners:
                listener.signal(work, news)

    def _poll_file(self) -> bool:
        """Whether the file is the one. Listeners are woken when that changes: they ask, and are
        told what is the matter.
        """
        try:
            changed, trouble = self._look_again(), False
        except Exception:  # not only EngineUnavailable: it may be that it cannot be opened
            changed, trouble = not self._trouble, True
        changed = changed or trouble != self._trouble
        self._trouble = trouble
        if changed:
            for listener in self._listeners:
                listener.signal(True, ())
        return not trouble


def _data_version(connection: sqlite3.Connection) -> int:
    [(version,)] = connection.execute("PRAGMA data_version").fetchall()
    return int(version)


def _resumed(connection: sqlite3.Connection) -> float:
    [(times,)] = connection.execute(sql.resumed).fetchall()
    return float(times)


def begin_writing(connection: sqlite3.Connection, limit: float, wanted: Sized) -> bool:
    """Begin a write transaction as soon as no other process is in one. False: not yet, and somebody
    wants something else meanwhile.

    SQLite's own waiting sleeps up to 100 ms at a time, so under load the same process always wins.
    Transactions here take a few milliseconds: asking every millisecond or so is fair to all.
    """
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(random.uniform(*TURN_SECONDS))  # noqa: S311 - not for secrets
            if wanted:
                return False
        else:
            return True
