"""One connection that opens itself when it is needed and again after it was lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from headrace.engine.postgres.connection.connector import Connection, Connector
from headrace.engine.postgres.connection.deadline import Deadline
from headrace.engine.postgres.connection.errors import USELESS, may_repeat, translated
from headrace.errors import EngineUnavailable

CLOSE_SECONDS = 5.0
# What a server has to stop a statement that was given up.
END_SECONDS = 2.0
COMMAND_SECONDS = 30.0
REPEATS = 8

# Verbs that look up the few rows they are about. Where statistics are old or tables small, the
# planner would rather read everything; a plan that was right once may then be used on a backlog.
LOOK_UP = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

if TYPE_CHECKING:
    # Only the driver's stubs know it as generic.
    Prepared = PreparedStatement[Any]
else:
    Prepared = PreparedStatement
Rows = list[Any]
T = TypeVar("T")


class Link:
    """A connection for one purpose. Calls that meet wait for each other, first come first served.

    After a time-out the connection is dropped and its server asked to stop: whether the statement
    took effect is open then, as it is after a loss. Every statement here may be repeated safely.

    Behind a pooler (see `Connector`) each statement is a transaction that begins with the settings,
    unless it is within one by `transaction`.
    """

    def __init__(
        self,
        connector: Connector,
        purpose: str,
        *,
        settings: dict[str, str] | None = None,
        timeout: float = COMMAND_SECONDS,
        idle_seconds: float | None = None,
    ) -> None:
        self.address = connector.address
        self._connector = connector
        # Of the server that the connection leads to.
        self._epoch = 0
        # What each transaction begins with, if the connection leads to a pooler.
        self._begin = ""
        self._numbers = itertools.count()
        self.on_open: Callable[[Connection], Awaitable[None]] | None = None
        self._settings = {
            "search_path": f"{self.address.quoted_schema}, pg_temp",
            "application_name": f"headrace {purpose}",
            "client_min_messages": "warning",
            # The estimates that would switch it on are wrong for statements over a few rows.
            "jit": "off",
            **(settings or {}),
        }
        self._timeout = timeout
        self._idle_seconds = idle_seconds
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._connection: Connection | None = None
        # Statements of this connection by their text.
        self._prepared: dict[str, Prepared] = {}
        # Queues that this connection has marked as used in this hour. The next one may lead
        # to a replica that lagged behind, or to a server restored to an earlier time.
        self.seen: set[str] = set()
        self.seen_in = 0.0
        self._deadline = Deadline()
        self._turn = asyncio.Lock()
        self._shut = False

    @property
    def is_open(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None and not self._connection.is_closed()

    @property
    def pooled(self) -> bool:
        """Whether the connection leads to a pooler: a session keeps nothing."""
        return bool(self._begin)

    @property
    def busy(self) -> bool:
        """Whether a call would have to wait for another."""
        return self._turn.locked()

    async def fetch(self, statement: str, *arguments: object) -> Rows:
        """Run one statement and return its rows."""
        return await self.repeated(self.run, statement, *arguments)

    async def repeated(
        self,
        step: Callable[..., Awaitable[T]],
        *arguments: object,
        timeout: float | None = None,
    ) -> T:
        """Run `step` with the connection; again after a deadlock or a serialization failure, or if
        the server had closed the connection before. Like `hold`, without the cost of a context
        manager.
        """
        for repeat in range(REPEATS):
            await self._turn.acquire()
            connection: Connection | None = None
            try:
                self._begin_use()
                connection = await self._opened()
                self._deadline.begin(timeout or self._timeout, connection)
                return await step(connection, *arguments)
            except (Exception, asyncio.CancelledError) as raised:
                error = self._deadline.cause_of(raised)
                better = self._trouble(connection, error)
                if better is None:
                    raise
                if repeat == REPEATS - 1 or not self._may_repeat(error):
                    raise better from error
            finally:
                self._end_use()
                self._turn.release()
            await asyncio.sleep(random.random() * 0.01 * 2**repeat)  # noqa: S311 - only a jitter
        raise AssertionError("unreachable")

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[Connection]:
        """Have the connection alone for several statements. Errors become those of the contract."""
        async with self._turn:
            self._begin_use()
            connection: Connection | None = None
            try:
                connection = await self._opened()
                self._deadline.begin(self._timeout, connection)
                yield connection
            except (Exception, asyncio.CancelledError) as raised:
                error = self._deadline.cause_of(raised)
                better = self._trouble(connection, error)
                if better is None:
                    raise
                raise better from error
            finally:
                self._end_use()

    async def run(self, connection: Connection, statement: str, *arguments: object) -> Rows:
        """A step of `repeated`: one statement. The driver takes longer to find a prepared one."""
        if self._begin:
            rows: Rows
            async with self.with_settings(connection):
                rows = await connection.fetch(statement, *arguments)
            return rows
        prepared = self._prepared.get(statement)
        if prepared is None:
            # One without a name would be planned anew in each call. No name is used a second time.
            name = f"headrace_{next(self._numbers)}"
            prepared = self._prepared[statement] = await connection.prepare(statement, name=name)
        try:
            return await prepared.fetch(*arguments)
        except asyncpg.InvalidCachedStatementError:
            # The schema has changed meanwhile and nothing was done. The driver begins anew.
            del self._prepared[statement]
            rows = await connection.fetch(statement, *arguments)
            return rows

    @contextlib.asynccontextmanager
    async def with_settings(self, connection: Connection) -> AsyncIterator[None]:
        """See to it that the settings of this link hold for what is done within."""
        if self._begin and not connection.is_in_transaction():
            async with self.transaction(connection):
                yield
        else:
            yield

    @contextlib.asynccontextmanager
    async def transaction(self, connection: Connection) -> AsyncIterator[None]:
        """Make one transaction of what is done within, with the settings of this link."""
        if not self._begin:
            async with connection.transaction():
                yield
            return
        try:
            await connection.execute(self._begin)
            yield
            await connection.execute("COMMIT")
        except Exception:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        except BaseException:
            # Its server may be silent: a reply to ROLLBACK would be waited for without a limit.
            self._drop(connection)
            raise

    async def alone(self, statement: str) -> None:
        """Run a statement that must not be within a transaction; its names have schemas."""

        async def run(connection: Connection) -> None:
            await connection.execute(statement)

        await self.repeated(run)

    def _begin_use(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end_use(self) -> None:
        self._deadline.end()
        if self._idle_seconds is not None and self.is_open:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_seconds, self._close_when_idle)

    def _trouble(self, connection: Connection | None, error: BaseException) -> Exception | None:
        """The error in the contract's words, if it has any; a useless connection is dropped."""
        if connection is not None and isinstance(error, USELESS):
            if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                self._connector.leave()
            self._drop(connection)
        return translated(error, self.address)

    def _may_repeat(self, error: BaseException) -> bool:
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            return self._connector.has_others
        return may_repeat(error)

    def _drop(self, connection: Connection) -> None:
        """Use another one from now on. This one may be waiting for a lock: if it were only cut off,
        its server would not notice before the lock is given, and each try would leave one there.
        """
        if self._connection is connection:
            self._connection = None
        ending = asyncio.get_running_loop().create_task(_ended(connection, END_SECONDS))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def allow(self) -> None:
        """Let it be used (again)."""
        self._shut = False

    async def shut(self) -> None:
        """Close it for good: a late use raises instead of leaving a connection behind."""
        self._shut = True
        await self.close()
        if self._closing is not None:
            await self._closing

    async def close(self) -> None:
        """Close the connection, if there is one. The next use opens another."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        async with self._turn:
            self._deadline.forget()
            connection, self._connection = self._connection, None
            if connection is not None:
                await _ended(connection, CLOSE_SECONDS)
        if self._endings:
            await asyncio.wait(self._endings)

    def _close_when_idle(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.close())

    async def _opened(self) -> Connection:
        if self._shut:
            raise EngineUnavailable("the engine is closed; call its open() before using it")
        connection = self._connection
        if connection is not None and self._epoch != self._connector.epoch:
            self._drop(connection)
            connection = None
        if connection is None or connection.is_closed():
            epoch = self._connector.epoch
            opened = await self._connector.connect(self._settings)
            connection = self._connection = opened.connection
            self._begin, self._epoch = opened.begin, epoch
            self._prepared, self.seen = {}, set()
            if self.on_open is not None:
                self._deadline.begin(self._timeout, connection)
                await self.on_open(connection)
        return connection


async def _ended(connection: Connection, seconds: float) -> None:
    """Close a connection. What it is at work on is cancelled first; then it is cut off."""
    if connection.is_closed():
        return
    try:
        await connection.close(timeout=seconds)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
