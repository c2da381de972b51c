"""Changing the small administrative records, each guarded by its version."""

from __future__ import annotations

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.views import record, record_get
from headrace.errors import RecordConflict
from headrace.model.views import Record

RECORD_PUT = query("record_put")
RECORD_DELETE = query("record_delete")


def put(transaction: Transaction, kind: str, key: str, body: bytes, version: int | None) -> Record:
    """Write a record if it has the expected version."""
    _expect(kind, key, version, record_get(transaction, kind, key))
    [row] = transaction.connection.execute(
        RECORD_PUT, (kind, key, body, transaction.now)
    ).fetchall()
    return record(row)


def delete(transaction: Transaction, kind: str, key: str, version: int | None) -> bool:
    """Delete a record if it has the expected version; False if there is none."""
    current = record_get(transaction, kind, key)
    if current is None:
        return False
    _expect(kind, key, version, current)
    transaction.connection.execute(RECORD_DELETE, (kind, key))
    return True


def _expect(kind: str, key: str, version: int | None, current: Record | None) -> None:
    found = 0 if current is None else current.version
    if version is not None and version != found:
        there = f"has version {found}" if found else "does not exist"
        wanted = f"version {version} was expected" if version else "it was expected not to exist"
        raise RecordConflict(f"record {kind}/{key} {there}, but {wanted}; read it again")
