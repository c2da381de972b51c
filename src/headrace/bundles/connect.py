"""From the address of tables to a SQLAlchemy engine. Needs the extra `bundles`."""

from __future__ import annotations

from time import monotonic
from typing import Any

from headrace.bundles.tables import TablesAddress
from headrace.engine.sqlite.connection.opening import make_private
from headrace.errors import InvalidSetting, MissingDriver

try:
    from sqlalchemy import event
    from sqlalchemy.exc import InvalidatePoolError
    from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
    from sqlalchemy.pool import StaticPool
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'tables of bundles need {error.name}; install it: pip install "headrace[bundles]"'
    ) from error

BUSY_SECONDS = 30.0
# SQLite has one writer at a time; readers do not wait for it.
SQLITE_CONNECTIONS = 4
# Connections that idle this long may have been cut by a proxy.
RECYCLE_SECONDS = 300
# One that idled less is not asked whether it is still there, which takes three exchanges.
FRESH_SECONDS = 5.0
_RETURNED = "headrace returned at"


def make_engine(address: TablesAddress, connections: int) -> AsyncEngine:
    """Return an engine with at most so many connections; none is open yet."""
    try:
        return _postgres(address, connections) if address.postgres else _sqlite(address)
    except ModuleNotFoundError as error:
        extra = "bundles,postgres" if address.postgres else "bundles"
        raise MissingDriver(
            f'tables in {address} need {error.name}; install it: pip install "headrace[{extra}]"'
        ) from error


def _postgres(address: TablesAddress, connections: int) -> AsyncEngine:
    import asyncpg  # noqa: PLC0415 - only for PostgreSQL

    from headrace.engine.postgres.connection.address import quoted  # noqa: PLC0415
    from headrace.engine.postgres.connection.connector import is_direct  # noqa: PLC0415

    # Extensions such as pgvector are usually in `public`.
    path = f"{quoted(address.schema or '')}, public"
    settings = {"application_name": address.schema or "headrace", "search_path": path}

    async def connect() -> Any:
        # By asyncpg itself, which reads the URL as the engine of the jobs does (sslmode, …).
        try:
            connection = await asyncpg.connect(
                address.url, server_settings=settings, statement_cache_size=0
            )
        except asyncpg.ProtocolViolationError as error:
            if "unsupported startup parameter" not in str(error):
                raise
            raise _behind_a_pooler(address) from error
        if not await is_direct(connection, path):
            # Its tables would be made wherever the session of somebody else looks for them.
            connection.terminate()
            raise _behind_a_pooler(address)
        return connection

    kept = max(connections // 2, 1)
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=kept,
        max_overflow=max(connections - kept, 0),
        pool_recycle=RECYCLE_SECONDS,
    )
    _replace_lost(engine)
    return engine


def _replace_lost(engine: AsyncEngine) -> None:
    """Replace connections that are lost when they are taken. The driver knows of one that the
    server has closed; one that idled may have been cut without a word, and is asked.
    """
    dialect = engine.dialect

    @event.listens_for(engine.sync_engine, "checkin")
    def returned(_: Any, record: Any) -> None:
        record.info[_RETURNED] = monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def taken(connection: Any, record: Any, _: Any) -> None:
        if connection.driver_connection.is_closed():
            raise InvalidatePoolError
        if monotonic() - record.info.pop(_RETURNED, monotonic()) < FRESH_SECONDS:
            return
        try:
            dialect.do_ping(connection)
        except (dialect.loaded_dbapi.Error, OSError) as error:
            raise InvalidatePoolError from error


def _behind_a_pooler(address: TablesAddress) -> InvalidSetting:
    return InvalidSetting(
        f"tables in {address} cannot be behind a pooler such as PgBouncer; name the server itself "
        "in the setting url of the bundle, HEADRACE_<NAME>_URL"
    )


def _sqlite(address: TablesAddress) -> AsyncEngine:
    import aiosqlite  # noqa: F401, PLC0415 - only to say that it is missing

    if address.path is None:
        engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
    else:
        address.path.parent.mkdir(parents=True, exist_ok=True)
        path = address.path
        engine = create_async_engine(
            f"sqlite+aiosqlite:///{path}",
            connect_args={"timeout": BUSY_SECONDS},
            # Kept open: one that is opened for a statement starts a thread for it.
            pool_size=SQLITE_CONNECTIONS,
            max_overflow=0,
        )
        # Not before: whoever only looks whether there are tables must not make the file.
        event.listen(engine.sync_engine, "do_connect", lambda *_: make_private(path))

    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        if address.path is not None:
            # Readers do not wait for the writer.
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    return engine
