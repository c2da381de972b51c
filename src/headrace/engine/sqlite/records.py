"""Small administrative records, each with a version that guards changes."""

from __future__ import annotations

from typing import Any

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import moment
from headrace.engine.sqlite.sql import sql
from headrace.errors import RecordConflict
from headrace.model.views import Record


def get(transaction: Transaction, kind: str, key: str) -> Record | None:
    """Return one record, or None."""
    row = transaction.connection.execute(sql.record_get, (kind, key)).fetchone()
    return None if row is None else _record(row)


def list_all(
    transaction: Transaction, kind: str, *, after: str = "", limit: int = 1_000
) -> list[Record]:
    """Return records of a kind by key."""
    return [
        _record(row)
        for row in transaction.connection.execute(sql.record_list, (kind, after, limit))
    ]


def put(
    transaction: Transaction, kind: str, key: str, body: bytes, *, version: int | None = None
) -> Record:
    """Write a record if it has the expected version, and return it."""
    _expect(kind, key, version, get(transaction, kind, key))
    values = (kind, key, body, transaction.now)
    [row] = transaction.connection.execute(sql.record_put, values).fetchall()
    return _record(row)


def delete(transaction: Transaction, kind: str, key: str, *, version: int | None = None) -> bool:
    """Delete a record if it has the expected version; return False if there is none."""
    current = get(transaction, kind, key)
    if current is None:
        return False
    _expect(kind, key, version, current)
    transaction.connection.execute(sql.record_delete, (kind, key))
    return True


def _expect(kind: str, key: str, version: int | None, current: Record | None) -> None:
    found = 0 if current is None else current.version
    if version is not None and version != found:
        there = f"has version {found}" if found else "does not exist"
        wanted = f"version {version} was expected" if version else "it was expected not to exist"
        raise RecordConflict(f"record {kind}/{key} {there}, but {wanted}; read it again")


def _record(row: tuple[Any, ...]) -> Record:
    return Record(row[0], row[1], row[2], row[3], moment(row[4]))
