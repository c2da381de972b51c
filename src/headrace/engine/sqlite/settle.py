"""Recording how attempts ended."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.engine.follower_steps import followers, steps
from headrace.engine.sqlite import lanes
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.insert import insert
from headrace.engine.sqlite.rates import keys
from headrace.engine.sqlite.rows import id_list
from headrace.engine.sqlite.sql import sql
from headrace.engine.stored_text import storable
from headrace.errors import InvalidInput
from headrace.model.durable.awaited import Awaited, encode_awaited
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.times import kept_delay

# Id, seq, token, queue, lane, width, hold, pinned, reason of a cancel, task.
_Looked = tuple[str, int, int, str, str | None, int, int, int, str | None, str]
_decode_looked = msgspec.json.Decoder(list[_Looked]).decode

SCHEDULED, WAITING, READY, RUNNING, COMPLETED, FAILED, TIMEOUT, CANCELLED = range(8)

# What one settlement that cannot be stored raises; the others are then settled without it.
IMPOSSIBLE = (
    ValueError,
    TypeError,
    OverflowError,
    InvalidInput,
    *(sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError),
)


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[str]:
    """Record outcomes, give freed places to the next and store what follows; return the ids that
    were refused.
    """
    if [each for each in settlements if each.follow]:
        return [job_id for step in steps(settlements) for job_id in _settle(transaction, step)]
    return _settle(transaction, settlements) if settlements else []


def _settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[str]:
    """Record a step, all of it or nothing; if it is impossible, its halves."""
    connection = transaction.connection
    connection.execute("SAVEPOINT settlements")
    try:
        refused = SettleBatch(transaction).settle(settlements)
        if settlements[0].follow:
            stale = set(refused)
            insert(transaction, followers(each for each in settlements if each.job_id not in stale))
    except IMPOSSIBLE:
        connection.execute("ROLLBACK TO settlements")
        connection.execute("RELEASE settlements")
        # Queues are marked again by whoever uses them next: these marks are gone.
        transaction.used.clear()
        if len(settlements) == 1:
            return [settlements[0].job_id]
        middle = len(settlements) // 2
        return _settle(transaction, settlements[:middle]) + _settle(
            transaction, settlements[middle:]
        )
    connection.execute("RELEASE settlements")
    return refused


class SettleBatch:
    """Settlements that are looked up, judged and written together."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.completed: dict[int, str] = {}
        self.finished: list[tuple[Any, ...]] = []
        self.requeued: list[tuple[Any, ...]] = []
        self.given_back: list[int] = []
        self.suspended: list[tuple[int, str, str]] = []
        # Tasks of reserved jobs by queue: of those whose next in line are, too, and of others.
        self.reserved: dict[str, set[str]] = {}
        self.reserved_alone: dict[str, set[str]] = {}
        self.freed: Counter[lanes.Place] = Counter()
        self.arrivals: lanes.LaneArrivals | None = None
        self.holds: dict[lanes.Place, float] = {}

    def settle(self, settlements: Sequence[Settlement]) -> list[str]:
        """Judge each settlement, then write all that were accepted."""
        connection = self.transaction.connection
        ids = id_list([settlement.job_id for settlement in settlements])
        [(text, expiring)] = connection.execute(sql.settle_look, (ids,)).fetchall()
        found = {row[0]: row for row in _decode_looked(text)}
        refused = []
        for settlement in settlements:
            row = found.get(settlement.job_id)
            if row is None or row[2] != settlement.token:
                refused.append(settlement.job_id)
                continue
            del found[settlement.job_id]  # a second outcome of the same attempt is refused
            self.judge(settlement, row)
        self.write()
        if expiring:
            self.end_expiry()
        if self.holds:
            keys.hold(self.transaction, self.holds)
        return refused

    def write(self) -> None:
        """Write down what was judged, then hand freed places on."""
        connection = self.transaction.connection
        gone = [*self.completed, *(row[-1] for row in self.finished)]
        if self.completed:
            results = msgspec.json.encode(self.completed).decode()
            connection.execute(sql.complete, (self.transaction.now, results))
        if self.finished:
            connection.executemany(sql.finish, self.finished)
        if gone:
            connection.execute(sql.finish_remove, (msgspec.json.encode(gone).decode(),))
        if (self.reserved or self.reserved_alone) and self.begins_line():
            connection.execute(sql.workers_offer_anew)
        if self.requeued:
            connection.executemany(sql.requeue, self.requeued)
        if self.suspended:
            connection.executemany(sql.suspend, self.suspended)
        if self.arrivals is not None:
            self.arrivals.admit(self.transaction, self.freed)
            for place in self.arrivals.widths:
                self.freed.pop(place, None)
        if self.freed:
            lanes.release(self.transaction, self.freed)
        for queue, tasks in self.reserved.items():
            named = msgspec.json.encode(sorted(tasks)).decode()
            connection.execute(sql.reserve_next, (queue, named))
        self.transaction.reserved.update(self.reserved, self.reserved_alone)

    def end_expiry(self) -> None:
        """Those that have started do not expire any more; those that were given back may."""
        back = set(self.given_back)
        started = [*self.completed, *(row[-1] for row in self.finished + self.requeued)]
        started = [seq for seq in started if seq not in back]
        execute = self.transaction.connection.execute
        execute(sql.expiry_forget, (msgspec.json.encode(started).decode(),))
        if back:
            execute(sql.expiry_resume, (msgspec.json.encode(self.given_back).decode(),))

    def begins_line(self) -> bool:
        """Whether reserved jobs come where there were none of their queue and task."""
        execute = self.transaction.connection.execute
        return any(
            not execute(sql.reserved_exists, (queue, task)).fetchone()[0]
            for lines in (self.reserved, self.reserved_alone)
            for queue, tasks in lines.items()
            for task in tasks
        )

    def judge(self, settlement: Settlement, row: tuple[Any, ...]) -> None:
        """Decide what becomes of one job."""
        match settlement.outcome:
            case Completed(result=result):
                self.complete(settlement, row, result)
            case Retry() | Snoozed() | Released() | Reserved() | Cancelled() if row[8] is not None:
                # Somebody wants it cancelled, and knows why: another turn would forget that.
                self.finish(settlement, row, CANCELLED, error=row[8])
                self.hold(row, getattr(settlement.outcome, "hold_lane", 0.0))
            case Retry(failure=failure, delay=delay, hold_lane=seconds):
                self.again(settlement, row, delay, failure, spent=True)
                self.hold(row, seconds)
            case Failed(failure=failure, hold_lane=seconds):
                self.hold(row, seconds)
                self.finish(settlement, row, FAILED, error_type=failure.type, error=failure.message)
            case TimedOut(failure=failure):
                self.finish(
                    settlement, row, TIMEOUT, error_type=failure.type, error=failure.message
                )
            case Cancelled(reason=reason):
                self.finish(settlement, row, CANCELLED, error=reason)
            case Snoozed(delay=delay, awaits=awaits, started=started):
                self.again(settlement, row, delay, None, spent=False, awaits=awaits)
                if not started:
                    self.given_back.append(row[1])
            case Released():
                self.give_back(settlement, row)
            case Reserved(alone=alone):
                self.give_back(settlement, row, reserved=True)
                lines = self.reserved_alone if alone else self.reserved
                lines.setdefault(row[3], set()).add(row[9])

    def hold(self, row: tuple[Any, ...], seconds: float) -> None:
        """Nothing of the job's lane starts for so long."""
        if seconds and row[4] is not None:
            place = row[3], row[4]
            self.holds[place] = max(seconds, self.holds.get(place, 0.0))

    def complete(self, settlement: Settlement, row: tuple[Any, ...], result: bytes) -> None:
        """The job is over as it should be: nearly all are, so they are written together."""
        try:
            text = result.decode()
        except UnicodeDecodeError:
            text = "\0"
        if settlement.entry is not None or "\0" in text:
            self.finish(settlement, row, COMPLETED, result=result)
            return
        self.completed[row[1]] = text
        if row[4] is not None:
            self.freed[row[3], row[4]] += 1

    def finish(
        self,
        settlement: Settlement,
        row: tuple[Any, ...],
        state: int,
        *,
        error_type: str | None = None,
        error: str | None = None,
        result: bytes | None = None,
    ) -> None:
        """The job is over; its place goes to the next."""
        self.finished.append(
            (
                state,
                self.transaction.now,
                None if error_type is None else storable(error_type),
                None if error is None else storable(error),
                result,
                settlement.entry,
                row[1],
            )
        )
        if row[4] is not None:
            self.freed[row[3], row[4]] += 1

    def again(
        self,
        settlement: Settlement,
        row: tuple[Any, ...],
        delay: float,
        failure: Failure | None,
        *,
        spent: bool,
        awaits: tuple[Awaited, ...] = (),
    ) -> None:
        """The job has another turn after `delay`, or when something that it awaits comes about;
        with `hold` it keeps its place meanwhile.
        """
        delay = kept_delay(delay)
        _, seq, _, queue, lane, width, hold, _, _, _ = row
        pinned = hold if lane is not None else 0
        if lane is not None and not pinned:
            self.freed[queue, lane] += 1
        if delay > 0:
            state = SCHEDULED
            if (stored := encode_awaited(awaits)) is not None:
                self.suspended.append((seq, settlement.job_id, stored.decode()))
        elif lane is None or pinned:
            state = READY
            self.transaction.made_ready.add(queue)
        else:
            state = WAITING
            self._wait_in((queue, lane), width, seq)
        self.requeued.append(
            (
                state,
                pinned,
                0,
                0 if spent else 1,
                self.transaction.now + delay,
                None if failure is None else storable(failure.type),
                None if failure is None else storable(failure.message),
                settlement.entry,
                seq,
            )
        )

    def give_back(
        self, settlement: Settlement, row: tuple[Any, ...], *, reserved: bool = False
    ) -> None:
        """The job was never started: ready again, in its place, as if it had not been claimed."""
        _, seq, _, queue, lane, width, _, pinned, _, _ = row
        self.requeued.append((READY, pinned, reserved, 1, None, None, None, settlement.entry, seq))
        self.given_back.append(seq)
        self.transaction.made_ready.add(queue)
        if lane is not None and not pinned:
            # Somebody better may have begun to wait since.
            self._wait_in((queue, lane), width, seq)

    def _wait_in(self, place: lanes.Place, width: int, seq: int) -> None:
        if self.arrivals is None:
            self.arrivals = lanes.LaneArrivals()
        self.arrivals.add(place, width, seq, new=False)
