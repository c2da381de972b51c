"""From what the server says to what Headrace raises."""

from __future__ import annotations

from headrace.engine.redis.address import Address
from headrace.errors import EngineError, EngineUnavailable, StorageFull

# The server is there but cannot serve now: it starts, fails over, or a long script runs.
AWAY = {"LOADING", "READONLY", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"}
FULL = {"OOM", "MISCONF"}
REFUSED = {"NOAUTH", "WRONGPASS", "NOPERM"}


class ScriptUnknown(EngineError):
    """The server does not have the script (any more); it has to be sent whole."""


def fault(address: Address, message: str) -> EngineError:
    """The error for an error reply. None of these replies repeats a password."""
    word = message.partition(" ")[0]
    if word == "NOSCRIPT":
        return ScriptUnknown(message)
    if word in AWAY or "max number of clients" in message:
        return EngineUnavailable(f"Redis at {address} cannot serve now: {message}")
    if word in FULL:
        return StorageFull(
            f"Redis at {address} has no room to write: {message}. Free memory or disk, raise "
            "maxmemory, or prune finished jobs"
        )
    if word in REFUSED:
        return EngineError(
            f"Redis at {address} refuses this user: {message}. Correct the user and password in "
            "HEADRACE_URL, or let the user reach the keys and channels of the namespace"
        )
    if "unknown command" in message and "HELLO" in message.upper():
        return EngineError(f"Redis at {address} is older than 7.0; update it")
    return EngineError(f"Redis at {address} answered: {message}")


def unavailable(address: Address, cause: BaseException | str) -> EngineUnavailable:
    """The error for a server that cannot be reached, or that fell silent."""
    why = cause if isinstance(cause, str) else (str(cause) or type(cause).__name__)
    error = EngineUnavailable(
        f"Redis at {address} cannot be reached: {why}. Start it, or correct HEADRACE_URL"
    )
    error.__cause__ = cause if isinstance(cause, BaseException) else None
    return error
