"""What the driver raises, in the words of the contract."""

from __future__ import annotations

import asyncio

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.tls import remedy_for
from headrace.errors import (
    EngineError,
    EngineRefused,
    EngineUnavailable,
    InvalidInput,
    InvalidSetting,
    StorageFull,
)

# Two transactions met in a way that only one of them survives; the other was rolled back whole and
# is simply tried again.
REPEATABLE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

# After these the connection is worth nothing: it may still be at work on what was given up, it
# leads to a server that has become a standby, or the driver has lost count of who says what.
USELESS = (TimeoutError, asyncpg.ReadOnlySQLTransactionError, asyncpg.InternalClientError)

_AWAY = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncio.IncompleteReadError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InternalClientError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)


_REMEDIES: tuple[tuple[type[BaseException], str], ...] = (
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "Check the user and the password in HEADRACE_URL.",
    ),
    (
        asyncpg.InvalidCatalogNameError,
        "Create the database, or correct its name in HEADRACE_URL.",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "Raise max_connections on the server, or run fewer workers.",
    ),
    (
        asyncpg.ReadOnlySQLTransactionError,
        "It only reads, as a standby does: point HEADRACE_URL at the primary.",
    ),
    (
        TargetServerAttributeNotMatched,
        "Name a server in HEADRACE_URL that is what target_session_attrs asks for.",
    ),
    (
        asyncpg.QueryCanceledError,
        "Raise its statement_timeout, or see in its log who cancels statements.",
    ),
    (asyncpg.CannotConnectNowError, "It starts or stops; this is tried again."),
)
_SEE_LOG = "See its log, and that of a pooler such as PgBouncer in front of it."
_CHECK_ADDRESS = "Check that it runs and that HEADRACE_URL is right."
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


def refuses_for_good(error: BaseException) -> bool:
    """Whether a server refuses who asks or what is asked for, and will do so again."""
    return isinstance(error, _REFUSED) or remedy_for(error) is not None


def may_repeat(error: BaseException) -> bool:
    """Whether nothing was done, and a second try may well succeed.

    A server that ends a connection says so before it hangs up. If no statement was under way,
    the driver neither expects nor tells that, and refuses to send the next statement.
    """
    if isinstance(error, asyncpg.InternalClientError):
        return "cannot switch to state" in str(error)
    return isinstance(error, REPEATABLE)


def translated(error: BaseException, address: Address) -> EngineError | InvalidInput | None:
    """The error to raise instead, or None if this one is not the driver's."""
    where = f"PostgreSQL at {address.shown}"
    if isinstance(error, asyncpg.DiskFullError):
        return StorageFull(
            f"{where} has no room left to write: {reason(error)}. Free space on the server's "
            "disk or prune finished jobs; nothing was written."
        )
    remedy = remedy_for(error)
    if remedy is not None:
        return EngineRefused(f"{where} cannot be used with TLS as asked: {reason(error)}. {remedy}")
    if isinstance(error, _REFUSED):
        return EngineRefused(f"{where} refuses this: {reason(error)}. {_remedy(error)}")
    if isinstance(error, _AWAY) or _is_lost(error):
        # Only what came over the line has a severity.
        answered = getattr(error, "severity", None) is not None
        what = "cannot do this now" if answered else "cannot be reached"
        return EngineUnavailable(f"{where} {what}: {reason(error)}. {_remedy(error, answered)}")
    return _refused(error, where, address)


def _remedy(error: BaseException, answered: bool = True) -> str:
    found = next((text for kind, text in _REMEDIES if isinstance(error, kind)), None)
    return found or (_SEE_LOG if answered else _CHECK_ADDRESS)


def not_permitted(address: Address, reason: str) -> str:
    """Return what to tell a user who lacks a right."""
    return (
        f"PostgreSQL at {address.shown} does not permit this: {reason}. Grant the user CREATE on "
        f"the database, or USAGE and CREATE on an existing schema {address.schema!r}; or run "
        "`headrace migrate` as a user who has these rights, and grant this one the use of its "
        "tables (docs/how-to/operate.md)."
    )


def _refused(
    error: BaseException, where: str, address: Address
) -> EngineError | InvalidInput | None:
    """The server is there, but will not do this."""
    match error:
        case asyncpg.ClientConfigurationError() | asyncpg.UndefinedObjectError():
            return InvalidSetting(
                f"HEADRACE_URL has a parameter that cannot be used: {reason(error)}. "
                "Correct it or leave it out."
            )
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedFunctionError():
            return EngineError(
                f"{where} has no complete schema {address.schema!r}: {reason(error)}. Open the "
                "engine again to create it."
            )
        case asyncpg.InsufficientPrivilegeError():
            return EngineError(not_permitted(address, reason(error)))
        case _ if _is_bad_value(error):
            return InvalidInput(f"{where} cannot store this: {reason(error)}. Nothing was stored.")
        case asyncpg.PostgresError():
            return EngineError(f"{where} could not do this: {reason(error)}. Nothing was changed.")
    return None


def _is_bad_value(error: BaseException) -> bool:
    """Whether a value cannot be stored: refused by the driver while encoding, or by the server."""
    if isinstance(error, asyncpg.InterfaceError):
        return isinstance(error, ValueError)
    return isinstance(error, asyncpg.DataError | OverflowError | UnicodeError)


def _is_lost(error: BaseException) -> bool:
    """Whether the driver says that the connection is gone."""
    return isinstance(error, asyncpg.InterfaceError) and "clos" in str(error)


def reason(error: BaseException) -> str:
    """Return what the driver says, in one line."""
    text = str(error).strip().rstrip(".").splitlines()
    if not text:
        return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    return text[0][:300]
