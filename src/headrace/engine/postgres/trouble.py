"""What the driver raises, in the words of the contract."""

from __future__ import annotations

import asyncio

import asyncpg

from headrace.engine.postgres.address import Address
from headrace.errors import EngineError, EngineUnavailable, InvalidInput, StorageFull

# Two transactions met in a way that only one of them survives; the other was rolled back whole and
# is simply tried again.
REPEATABLE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

# A value that cannot be stored: refused by the driver while encoding, or by the server.
BAD_VALUE = (asyncpg.DataError, asyncpg.exceptions._base.DataError, OverflowError, UnicodeError)

_AWAY = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncio.IncompleteReadError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InternalClientError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)


def translated(error: BaseException, address: Address) -> EngineError | InvalidInput | None:
    """The error to raise instead, or None if this one tells of a mistake of ours."""
    where = f"PostgreSQL at {address.shown}"
    match error:
        case asyncpg.DiskFullError():
            return StorageFull(
                f"{where} has no room left to write: {_reason(error)}. Free space on the server's "
                "disk or prune finished jobs; nothing was written."
            )
        case asyncpg.InvalidAuthorizationSpecificationError():
            remedy = "Check the user and the password in HEADRACE_URL."
        case asyncpg.InvalidCatalogNameError():
            remedy = "Create the database, or correct its name in HEADRACE_URL."
        case asyncpg.TooManyConnectionsError():
            remedy = "Raise max_connections on the server, or run fewer workers."
        case asyncpg.ReadOnlySQLTransactionError():
            remedy = "It only reads, as a standby does: point HEADRACE_URL at the primary."
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedFunctionError():
            return EngineError(
                f"{where} has no complete schema {address.schema!r}: {_reason(error)}. Open the "
                "engine again to create it."
            )
        case asyncpg.InsufficientPrivilegeError():
            return EngineError(
                f"{where} does not permit this: {_reason(error)}. Grant the user CREATE on the "
                f"database, or USAGE and CREATE on an existing schema {address.schema!r}."
            )
        case _ if isinstance(error, BAD_VALUE):
            return InvalidInput(f"{where} cannot store this: {_reason(error)}. Nothing was stored.")
        case _:
            remedy = "Check that it runs and that HEADRACE_URL is right."
    if isinstance(error, _AWAY) or is_lost(error):
        return EngineUnavailable(f"{where} cannot be reached: {_reason(error)}. {remedy}")
    return None


def is_lost(error: BaseException) -> bool:
    """Whether the driver says that the connection is gone."""
    return isinstance(error, asyncpg.InterfaceError) and "clos" in str(error)


def _reason(error: BaseException) -> str:
    text = str(error).strip().rstrip(".").splitlines()
    if not text:
        return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    return text[0][:300]
