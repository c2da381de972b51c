"""What is kept of each lane and queue that has a rate or a hold.

A key is a queue and a lane in it; the lane "" is the queue itself.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import sql
from headrace.model.limits.rate import CLOCK_STEP_SECONDS, Rate

Place = tuple[str, str]
"""A queue and a lane in it, or ""."""


class JobRate(msgspec.Struct, array_like=True):
    """What a job says of the rate of its lane, as it is stored."""

    count: float
    per: float
    burst: int
    cost: float = 1.0
    count_retries: bool = True

    @property
    def rate(self) -> Rate:
        """The rate alone."""
        return Rate(self.count, self.per, self.burst)


decode_job_rate = msgspec.json.Decoder(JobRate).decode


class KeyState:
    """The row of one key. `write` keeps it if it has changed."""

    def __init__(self, place: Place, row: tuple[Any, ...] | None = None) -> None:
        self.place = place
        self.found = row is not None
        self.changed = False
        values = row or (*place, *(None,) * 6, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
        self.by_jobs = _rate(values[2:5])
        self.by_operator = _rate(values[5:8])
        self.tat: float = values[8]
        self.counted_at: float = values[9]
        self.held_until: float = values[10]
        self.line_at: float = values[11]
        self.line_tat: float = values[12]
        self.line_last: tuple[int, int] = (-values[13], values[14])

    @property
    def rate(self) -> Rate | None:
        """The rate that counts."""
        return self.by_operator or self.by_jobs

    def paid_at(self, rate: Rate) -> float:
        """When all that has started is paid for. No burst follows a hold."""
        return rate.after_hold(self.tat, self.held_until) if self.held_until else self.tat

    def opens_at(self, rate: Rate | None, cost: float = 1.0) -> float:
        """From when on a job may start; None: one that does not count."""
        if rate is None:
            return self.held_until
        return max(rate.opens_at(self.paid_at(rate), cost), self.held_until)

    def counts(self, job: JobRate | None, attempt: int) -> Rate | None:
        """The rate that a start of this job counts by, if it does."""
        if self.by_operator is None and job is None:
            return None
        if job is not None and attempt > 0 and not job.count_retries:
            return None
        return self.rate

    def opens_for(self, parked: tuple[Any, ...], now: float) -> float:
        """From when on a parked job, a row of parked_line.sql, may start, rounded up; not before
        now.
        """
        *_, attempt, text = parked
        job = None if text is None else decode_job_rate(text)
        opens = self.opens_at(self.counts(job, attempt), 1.0 if job is None else job.cost)
        return rounded_up(max(opens, now))

    def start(self, rate: Rate | None, now: float, cost: float) -> None:
        """Count a start."""
        if rate is not None:
            self.tat = rate.after_start(self.paid_at(rate), now, cost)
            self.counted_at = now
            self.changed = True

    def set_clock(self, now: float) -> None:
        """If the clock has gone back since the last start was counted, it counts as of now: what
        it owes does not grow by that.
        """
        ahead = self.counted_at - now
        if ahead > CLOCK_STEP_SECONDS:
            self.tat -= ahead
            self.line_at -= ahead
            self.line_tat -= ahead
            self.counted_at = now
            self.changed = True

    def scale(self, before: Rate | None, after: Rate | None, now: float) -> None:
        """What has started, and who is parked, counts by the new rate."""
        if before is None or after is None:
            return
        by = after.interval / before.interval
        self.tat, self.line_at, self.line_tat = (
            now + max(time - now, 0.0) * by for time in (self.tat, self.line_at, self.line_tat)
        )

    def write(self, transaction: Transaction) -> None:
        """Keep it, or forget it if nobody says anything any more."""
        if self.rate is None and self.held_until <= transaction.now:
            forgotten = transaction.connection.execute(sql.rate_delete, self.place).rowcount
            if forgotten or not self.found:
                return
        values = (
            *self.place,
            *_columns(self.by_jobs),
            *_columns(self.by_operator),
            *(self.tat, self.counted_at, self.held_until, self.line_at, self.line_tat),
            *(-self.line_last[0], self.line_last[1]),
        )
        transaction.connection.execute(sql.rate_write, values)


def rounded_up(time: float) -> float:
    """A time as it is stored, in microseconds, but not before it."""
    return math.ceil(time * 1e6) / 1e6


def _rate(columns: tuple[Any, ...]) -> Rate | None:
    return None if columns[0] is None else Rate(*columns)


def _columns(rate: Rate | None) -> tuple[Any, ...]:
    return (None, None, None) if rate is None else (rate.count, rate.per, rate.burst)


def read(transaction: Transaction, place: Place) -> KeyState:
    """What is kept of a key; as of one without a rate if nothing is."""
    row = transaction.connection.execute(sql.rate_read, place).fetchone()
    key = KeyState(place, row)
    key.set_clock(transaction.now)
    return key
