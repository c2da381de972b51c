"""What `doctor` learns from the server, each finding with its remedy."""

from __future__ import annotations

from typing import Any

from headrace.engine.postgres.connection.address import Address
from headrace.model.views import Finding

SKEW_SECONDS = 2.0
LONG_TRANSACTION_SECONDS = 300.0
BUSY_SHARE = 0.8


def findings(row: Any, skew: float) -> list[Finding]:
    """Judge a row of report.sql."""
    return [
        _durable(row, "fsync", "a crash of the server can corrupt the whole database"),
        _durable(row, "full_page_writes", "a crash of the server can corrupt pages"),
        _durable(
            row,
            "synchronous_commit",
            "jobs that were acknowledged last can be lost in a crash of the server",
            level="warning",
        ),
        _vacuum(row),
        _connections(row),
        _clock(skew),
        _transactions(row),
    ]


def about_pooler(address: Address, pooled: bool) -> list[Finding]:
    """Say what a pooler in front of the server takes away, if there is one."""
    if not pooled:
        return []
    detail = f"connections to {address.shown} lead through a pooler"
    if address.wakeups is not None:
        return [
            Finding("ok", "pooler", f"{detail}; signals come from {address.wakeups.shown} itself")
        ]
    if address.pooler == "session":
        return [Finding("ok", "pooler", f"{detail} in session mode")]
    return [
        Finding(
            "warning",
            "pooler",
            f"{detail}, and no signals: idle workers look for jobs several times a second",
            "name the server itself in HEADRACE_URL as listen=host:port; of a pooler in session "
            "mode say pooler=session",
        )
    ]


def _durable(row: Any, setting: str, danger: str, level: str = "error") -> Finding:
    value = row[setting]
    if value == "off":
        return Finding(
            "error" if level == "error" else "warning",
            setting,
            f"{setting} is off: {danger}",
            f"set {setting} = on in postgresql.conf and reload the server",
        )
    return Finding("ok", setting, f"{setting} is {value}")


def _vacuum(row: Any) -> Finding:
    if row["autovacuum"] == "off":
        return Finding(
            "error",
            "autovacuum",
            "autovacuum is off: claims get slower with every job that ever ran",
            "set autovacuum = on in postgresql.conf and reload the server",
        )
    return Finding("ok", "autovacuum", "autovacuum is on")


def _connections(row: Any) -> Finding:
    used, limit = row["connections"], row["max_connections"]
    detail = f"{used} of {limit} connections are in use"
    if used > BUSY_SHARE * limit:
        return Finding(
            "warning",
            "connections",
            detail,
            "raise max_connections, or find who opens so many with pg_stat_activity",
        )
    return Finding("ok", "connections", detail)


def _clock(skew: float) -> Finding:
    detail = f"the server's clock is {skew:+.3f} s from this machine's"
    if abs(skew) > SKEW_SECONDS:
        return Finding(
            "warning", "clock", detail, "run a time service such as chrony on both machines"
        )
    return Finding("ok", "clock", detail)


def _transactions(row: Any) -> Finding:
    age = row["oldest_transaction"] or 0.0
    detail = f"the oldest open transaction is {age:.0f} s old"
    if age > LONG_TRANSACTION_SECONDS:
        return Finding(
            "warning",
            "transactions",
            f"{detail}; until it ends, finished rows pile up and claims get slower",
            "find it with: SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start",
        )
    return Finding("ok", "transactions", detail)
