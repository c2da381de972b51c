"""From what the server says to what Headrace raises."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from headrace.engine.redis.connection.address import Host, RedisAddress
from headrace.errors import EngineError, EngineRefused, EngineUnavailable, StorageFull

# The server is there but cannot serve now: it starts, fails over, or a long script runs.
AWAY = {"LOADING", "BUSY", "TRYAGAIN"}
# Nothing ran: another node has the store, or this one has lost touch with the others.
ELSEWHERE = {"MOVED", "ASK", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS"}
FULL = {"OOM", "MISCONF"}
REFUSED = {"NOAUTH", "WRONGPASS", "NOPERM"}
# The same, of what a script does.
REFUSED_IN_SCRIPT = ("ACL failure in script", "executing the script can't")
# Of these, a password that is changed later mends it without a new start.
SIGN_IN = {"NOAUTH", "WRONGPASS"}


class ScriptUnknown(EngineError):
    """The server does not have the script (any more); it has to be sent whole."""


class Elsewhere(EngineUnavailable):
    """The server did nothing, because another one has the store (now). In a cluster it says which:
    one to which it has `moved`, or one that is `asking` for it piece by piece.
    """

    moved: Host | None = None
    asking: Host | None = None


class WrongKind(EngineError):
    """The server is neither a sentinel nor part of a cluster, as the URL has it."""


def fault(address: RedisAddress, message: str) -> EngineError:
    """The error for an error reply. None of these replies repeats a password."""
    word = message.partition(" ")[0]
    if word == "NOSCRIPT" or word in ELSEWHERE:
        return ScriptUnknown(message) if word == "NOSCRIPT" else _elsewhere(address, message)
    if word in AWAY or "max number of clients" in message:
        return EngineUnavailable(f"Redis at {address} cannot serve now: {message}")
    if word in FULL:
        return StorageFull(
            f"Redis at {address} has no room to write: {message}. Free memory or disk, raise "
            "maxmemory, or prune finished jobs"
        )
    if word in REFUSED or any(each in message for each in REFUSED_IN_SCRIPT):
        kind = EngineRefused if word in SIGN_IN else EngineError
        return kind(
            f"Redis at {address} refuses this user: {message}. Correct the user and password in "
            "HEADRACE_URL, or let the user reach the keys and channels of the namespace"
        )
    if "unknown command" in message and "HELLO" in message.upper():
        return EngineError(f"Redis at {address} is older than 7.0; update it")
    other = "cluster support disabled" in message or "unknown command 'SENTINEL'" in message
    return (WrongKind if other else EngineError)(f"Redis at {address} answered: {message}")


def _elsewhere(address: RedisAddress, message: str) -> Elsewhere:
    word = message.partition(" ")[0]
    error = Elsewhere(f"Redis at {address} cannot serve now: {message}")
    if word in ("MOVED", "ASK"):
        host, _, port = message.split()[2].rpartition(":")
        other = (host.strip("[]") or address.host, int(port))
        if word == "MOVED":
            error.moved = other
        else:
            error.asking = other
    return error


def unavailable(address: RedisAddress, cause: BaseException | str) -> EngineError:
    """The error for a server that cannot be reached, or that fell silent."""
    error = _untrusted(address, cause) if isinstance(cause, ssl.SSLError) else None
    if error is None:
        why = cause if isinstance(cause, str) else (str(cause) or type(cause).__name__)
        if address.tls and isinstance(cause, TimeoutError):
            why = f"{why}. If it does not speak TLS on this port, use redis:// in HEADRACE_URL"
        error = EngineUnavailable(
            f"Redis at {address} cannot be reached: {why}. Start it, or correct HEADRACE_URL"
        )
    error.__cause__ = cause if isinstance(cause, BaseException) else None
    return error


def before_greeting(address: RedisAddress, cause: BaseException | None) -> BaseException | str:
    """Why a connection was lost before the server had answered anything."""
    if address.tls and not isinstance(cause, ssl.SSLError):
        return (
            "it hung up before it said anything. If it wants a certificate, name one that it "
            "accepts as ssl_certfile and ssl_keyfile in HEADRACE_URL"
        )
    return cause or "the connection was lost"


def _untrusted(address: RedisAddress, cause: ssl.SSLError) -> EngineError | None:
    """The error where one side does not accept the other, which trying again does not change."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        remedy = _CERTIFICATE.get(cause.verify_code)
        if remedy is None and "mismatch" in cause.verify_message:
            remedy = "Use the host name in HEADRACE_URL that the certificate is for"
        remedy = remedy or "Name the authority that signed it as ssl_ca_certs in HEADRACE_URL"
        return EngineError(
            f"Redis at {address} has a certificate that is not accepted: "
            f"{cause.verify_message}. {remedy}"
        )
    reason = getattr(cause, "reason", None) or ""
    if reason in _NO_TLS:
        return EngineError(
            f"Redis at {address} does not speak TLS ({reason}). Use redis:// in "
            "HEADRACE_URL, or the port on which it does"
        )
    if "ALERT" in reason:
        return EngineError(
            f"Redis at {address} refuses this connection ({reason}). If it wants a "
            "certificate, name one that it accepts as ssl_certfile and ssl_keyfile in HEADRACE_URL"
        )
    return None


_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}

# By OpenSSL's number of what is wrong.
_CERTIFICATE = {
    9: "Correct the clock of this machine, or of the one that made the certificate",
    10: "Renew the certificate of the server, or correct the clock of this machine",
    62: "Use the host name in HEADRACE_URL that the certificate is for",
    64: "Use the host name in HEADRACE_URL that the certificate is for",
}


def no_sentinel(asked: RedisAddress) -> EngineError:
    """The error for a server that is asked as a sentinel is, but is none."""
    return EngineError(
        f"the server at {asked} is no sentinel. Name the hosts and ports of the sentinels "
        "(mostly 26379) in HEADRACE_URL, or use redis:// for a single server"
    )


def refused_by_sentinel(asked: RedisAddress, error: EngineError) -> EngineRefused:
    """The error for a sentinel that wants a password, or another one."""
    return EngineRefused(
        f"the sentinel at {asked} refuses this user ({error}). Correct sentinel_password in "
        "HEADRACE_URL, and sentinel_username if it has users: they are not those of the master"
    )


def no_cluster(asked: RedisAddress) -> EngineError:
    """The error for a server that is asked as a node of a cluster is, but is none."""
    return EngineError(
        f"the server at {asked} is not part of a cluster. Use redis:// in HEADRACE_URL, or "
        "redis+sentinel:// where sentinels watch it"
    )


def no_master(store: RedisAddress, asked: RedisAddress) -> EngineError:
    """The error for a name that the sentinels do not know."""
    return EngineError(
        f"the sentinel at {asked} watches no master named {store.master!r}. Correct the name "
        "behind the hosts in HEADRACE_URL; SENTINEL MASTERS shows those that it watches"
    )


def not_served(store: RedisAddress) -> EngineUnavailable:
    """The error for a slot that no node has."""
    return EngineUnavailable(
        f"slot {store.slot} of namespace {store.namespace!r} is served by no node of the Redis "
        f"{store}. Give the slot to one (CLUSTER SLOTS shows who has which)"
    )


def nobody(store: RedisAddress, failures: Sequence[EngineError]) -> EngineUnavailable:
    """The error where nobody tells which server has the store."""
    asked = "sentinel" if store.kind == "sentinel" else "node"
    why = f" ({failures[0]})" if failures else f": no answer within {store.timeout:g} s"
    return EngineUnavailable(f"no {asked} of Redis {store} can be reached{why}")
