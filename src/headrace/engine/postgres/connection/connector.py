"""Opening connections: to the server that takes writes, straight or through a pooler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.errors import reason, refuses_for_good
from headrace.engine.postgres.connection.tls import check_files
from headrace.errors import EngineUnavailable

CONNECT_SECONDS = 10.0
# Of several servers one that is switched off answers nothing: the next has to be asked in time.
HOST_SECONDS = 3.0

if TYPE_CHECKING:
    # Only the driver's stubs know it as generic.
    Connection = asyncpg.Connection[Any]
else:
    Connection = asyncpg.Connection

# The server of a connection has another process than the pooler has told, or other settings than
# were asked for.
_IS_DIRECT = "SELECT pg_backend_pid() = $1::integer AND current_setting('search_path') = $2"
_TRIED = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InternalClientError)


class Opened(msgspec.Struct, frozen=True):
    """A connection. `begin` is empty if what is set in it stays; otherwise nothing may be expected
    of a session, and each transaction has to begin with it.
    """

    connection: Connection
    begin: str = ""


class Connector:
    """Connects to the servers of one address, first to the one that was found last.

    A pooler is noticed by itself: it refuses settings at the start of a session, or swallows them,
    or tells another process than the one that answers. What it shows may be another session in each
    transaction, so nothing is then left in a session and nothing expected there: settings, prepared
    statements, LISTEN. That is right for a pooler in session mode, too.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        # Where signals come from, if not from there.
        self.wakeups = None if address.wakeups is None else Connector(address.wakeups)
        # A server has been left. Connections that were opened before lead to it.
        self.epoch = 0
        self._first = 0
        # Hosts that refuse settings; None is the only one.
        self._poolers: set[tuple[str, int] | None] = set()

    @property
    def has_others(self) -> bool:
        """Whether there is another server to go to."""
        return len(self.address.hosts) > 1

    def leave(self) -> None:
        """The server takes no writes any more: all that are connected to it look for another."""
        self.epoch += 1
        if self.wakeups is not None:
            self.wakeups.leave()

    async def connect(self, settings: dict[str, str]) -> Opened:
        """Open a connection with these settings. Of several servers, one that takes writes."""
        check_files(self.address.dsn)
        hosts = self.address.hosts
        if len(hosts) < 2:
            return await self._connect(None, settings, CONNECT_SECONDS)
        found: list[tuple[str, BaseException]] = []
        for number in range(self._first, self._first + len(hosts)):
            place = number % len(hosts)
            try:
                opened = await self._connect(hosts[place], settings, HOST_SECONDS)
            except _TRIED as error:
                found.append(("{}:{}".format(*hosts[place]), error))
                continue
            self._first = place
            return opened
        if all(refuses_for_good(error) for _, error in found):
            raise found[0][1]
        told = "; ".join(f"{host}: {reason(error)}" for host, error in found)
        raise EngineUnavailable(
            f"PostgreSQL at {self.address.shown}: none of the servers takes writes ({told}). "
            "Promote a standby or start the primary; this is tried again."
        ) from found[-1][1]

    async def _connect(
        self, host: tuple[str, int] | None, settings: dict[str, str], seconds: float
    ) -> Opened:
        async with asyncio.timeout(seconds):
            if self.address.pooler is None and host not in self._poolers:
                try:
                    connection = await self._open(host, settings)
                except asyncpg.ProtocolViolationError as error:
                    if "unsupported startup parameter" not in str(error):
                        raise
                    self._poolers.add(host)
                else:
                    if await is_direct(connection, settings["search_path"]):
                        return Opened(connection)
                    return Opened(connection, self._begin(settings))
            # The name of the application is the one setting that poolers know.
            named = {"application_name": settings["application_name"]}
            return Opened(await self._open(host, named), self._begin(settings))

    async def _open(self, host: tuple[str, int] | None, settings: dict[str, str]) -> Connection:
        where: dict[str, Any] = {}
        if host is not None:
            where = {"host": host[0], "port": host[1]}
            if "target_session_attrs=" not in self.address.dsn:
                where["target_session_attrs"] = "read-write"
        connection: Connection = await asyncpg.connect(
            self.address.dsn,
            server_settings=settings,
            timeout=CONNECT_SECONDS,
            # What the driver prepares by itself has no name. A pooler may give it to others.
            statement_cache_size=0,
            **where,
        )
        return connection

    @staticmethod
    def _begin(settings: dict[str, str]) -> str:
        """All are names and values of this package; the schema in `search_path` is quoted."""
        steps = [
            f"SET LOCAL {name} = {value}"
            for name, value in settings.items()
            if name != "application_name"
        ]
        return "; ".join(["BEGIN", *steps])


async def is_direct(connection: Connection, search_path: str) -> bool:
    """Whether a connection that was opened with this search path leads straight to a server."""
    try:
        pid = connection.get_server_pid()
        found = await connection.fetchval(_IS_DIRECT, pid, search_path)
    except BaseException:
        connection.terminate()
        raise
    return bool(found)
