"""Workers and their leases."""

from __future__ import annotations

import msgspec

from headrace.engine.rows import claimed
from headrace.engine.sqlite import rows
from headrace.engine.sqlite.connection import migrate
from headrace.engine.sqlite.connection.thread import ConnectionThread, Transaction
from headrace.engine.sqlite.rows import moment
from headrace.engine.sqlite.sql import sql
from headrace.engine.stored_text import storable
from headrace.model.views import LostJob
from headrace.model.worker import Renewal, Worker, WorkerInfo, WorkerStats


class SqliteLeaseKeeper:
    """Renews one worker's lease through the writer's thread, so a blocked event loop is no harm."""

    def __init__(self, writer: ConnectionThread, worker_id: str, lease_seconds: float) -> None:
        self._writer = writer
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds

    def renew(self, stats: WorkerStats) -> Renewal:
        """Extend the lease; blocks until that is on disk."""
        return self._writer.run_blocking(
            lambda transaction: renew(transaction, self._worker_id, self._lease_seconds, stats)
        )

    def close(self) -> None:
        """Nothing to give back: the connection is the writer's."""


def register(transaction: Transaction, worker: WorkerInfo, lease_seconds: float) -> None:
    """Introduce a worker; earlier ones of its name are dead."""
    connection, now = transaction.connection, transaction.now
    name = storable(worker.name)
    connection.execute(sql.worker_replace, (now, name, worker.id))
    queues = msgspec.json.encode(worker.queues).decode()
    connection.execute(
        sql.worker_register,
        (
            worker.id,
            name,
            storable(worker.host),
            worker.pid,
            storable(worker.version),
            queues,
            worker.slots,
            now,
            now,
            now + lease_seconds,
            _tasks(worker),
            migrate.NEWEST,
        ),
    )


def know(transaction: Transaction, worker: WorkerInfo) -> None:
    """A worker knows other tasks than it said, if it is alive."""
    transaction.connection.execute(sql.worker_know, (_tasks(worker), worker.id))


def _tasks(worker: WorkerInfo) -> str | None:
    return None if worker.tasks is None else msgspec.json.encode(worker.tasks).decode()


def renew(
    transaction: Transaction, worker_id: str, lease_seconds: float, stats: WorkerStats
) -> Renewal:
    """Extend a lease that has not lapsed, and tell what should be cancelled."""
    connection, now = transaction.connection, transaction.now
    values = (
        now,
        now + lease_seconds,
        stats.running,
        stats.memory_bytes,
        stats.cpu_percent,
        stats.healthy,
        worker_id,
        now,
    )
    if connection.execute(sql.worker_renew, values).rowcount == 0:
        # It has been told that it is dead, so dead it is, even if no sweep has noticed yet.
        bury(transaction, worker_id)
        return Renewal(False)
    return Renewal(
        True, tuple(row[0] for row in connection.execute(sql.worker_cancelling, (worker_id,)))
    )


def retire(transaction: Transaction, worker_id: str) -> None:
    """A worker is gone: forgotten, or dead as long as jobs of it have to be taken over."""
    transaction.connection.execute(sql.worker_remove, (worker_id,))
    bury(transaction, worker_id)


def bury(transaction: Transaction, worker_id: str) -> None:
    """Declare a worker dead."""
    transaction.connection.execute(sql.worker_bury, (transaction.now, worker_id))


def take_lost(transaction: Transaction, limit: int) -> list[LostJob]:
    """Declare workers with a lapsed lease dead; answers jobs that dead workers hold. No lease lasts
    longer from now than it was to last when it was written, whatever the clock said then.
    """
    connection, now = transaction.connection, transaction.now
    connection.execute(sql.workers_ahead, (now, now, now))
    connection.execute(sql.workers_lapsed, (now, now))
    return [
        LostJob(
            job=claimed(row, cancel_requested=bool(row[14])),
            worker=row[17],
            started_at=moment(row[16]),
            age=max(now - row[16], 0.0),
        )
        for row in connection.execute(sql.lost, (limit,))
    ]


def workers(transaction: Transaction) -> list[Worker]:
    """Every worker that is remembered."""
    now = transaction.now
    return [rows.worker(row, now) for row in transaction.connection.execute(sql.workers, (now,))]
