"""What running attempts write before they end."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import moment
from headrace.engine.sqlite.sql import sql
from headrace.engine.stored_text import storable
from headrace.model.durable.writes import Note, StoredEntry


def write_progress(transaction: Transaction, notes: Sequence[Note]) -> tuple[str, ...]:
    """Record notes; answers the ids of those that were refused."""
    connection, now = transaction.connection, transaction.now
    refused: dict[str, None] = {}
    for one in notes:
        stage = None if one.stage is None else storable(one.stage)
        message = None if one.message is None else storable(one.message)
        # What is not a number becomes NULL on its way in: not told.
        values = (stage, one.progress, message, one.job_id, one.token)
        if connection.execute(sql.note, values).rowcount == 0:
            refused[one.job_id] = None
            continue
        connection.executemany(
            sql.entry_write,
            [
                (
                    one.job_id,
                    storable(entry.kind),
                    storable(entry.name),
                    entry.body,
                    one.token,
                    now,
                )
                for entry in one.entries
            ],
        )
    return tuple(refused)


def entries(transaction: Transaction, job_id: str, kind: str | None = None) -> list[StoredEntry]:
    """What was kept with a job."""
    rows = transaction.connection.execute(sql.entries, (job_id, kind, kind))
    return [StoredEntry(row[0], row[1], row[2], row[3], moment(row[4])) for row in rows]
