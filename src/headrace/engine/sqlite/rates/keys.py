"""Rates of lanes and queues: what is kept of each, and who sets it.

A key is a queue and a lane in it; the lane "" is the queue itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import moment
from headrace.engine.sqlite.sql import sql
from headrace.errors import InvalidSetting
from headrace.model.job import NewJob
from headrace.model.rate import Rate, RateView
from headrace.model.times import kept_delay

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
        values = row or (*place, *(None,) * 6, 0.0, 0.0, 0.0, 0.0, 0, 0)
        self.by_jobs = _rate(values[2:5])
        self.by_operator = _rate(values[5:8])
        self.tat: float = values[8]
        self.held_until: float = values[9]
        self.line_at: float = values[10]
        self.line_tat: float = values[11]
        self.line_last: tuple[int, int] = (-values[12], values[13])

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

    def start(self, rate: Rate | None, now: float, cost: float) -> None:
        """Count a start."""
        if rate is not None:
            self.tat = rate.after_start(self.paid_at(rate), now, cost)
            self.changed = True

    def write(self, transaction: Transaction) -> None:
        """Keep it, or forget it if nobody says anything any more."""
        if self.rate is None and self.held_until <= transaction.now:
            transaction.connection.execute(sql.rate_delete, self.place)
            return
        values = (
            *self.place,
            *_columns(self.by_jobs),
            *_columns(self.by_operator),
            *(self.tat, self.held_until, self.line_at, self.line_tat),
            *(-self.line_last[0], self.line_last[1]),
        )
        transaction.connection.execute(sql.rate_write, values)


def _rate(columns: tuple[Any, ...]) -> Rate | None:
    return None if columns[0] is None else Rate(*columns)


def _columns(rate: Rate | None) -> tuple[Any, ...]:
    return (None, None, None) if rate is None else (rate.count, rate.per, rate.burst)


def read(transaction: Transaction, place: Place) -> KeyState:
    """What is kept of a key; as of one without a rate if nothing is."""
    row = transaction.connection.execute(sql.rate_read, place).fetchone()
    return KeyState(place, row)


def keep(transaction: Transaction, jobs: Iterable[tuple[int, NewJob]]) -> None:
    """Keep what new jobs, each with its seq, say of the rates of their lanes; the last counts."""
    stored: list[tuple[str, int]] = []
    said: dict[Place, Rate] = {}
    for seq, job in jobs:
        rate = job.rate
        if rate is None:
            continue
        if job.lane is None:
            raise InvalidSetting(
                f'rate={rate.words!r} of job {job.id} needs a lane; give headrace.Lane(…, rate="…")'
            )
        said[job.queue, job.lane] = rate
        text = JobRate(rate.count, rate.per, rate.burst, job.cost, job.count_retries)
        stored.append((msgspec.json.encode(text).decode(), seq))
    transaction.connection.executemany(sql.rate_of_job, stored)
    for place, rate in said.items():
        key = read(transaction, place)
        if key.by_jobs != rate:
            change(transaction, key, by_jobs=rate, by_operator=key.by_operator)


def bring_back(transaction: Transaction, places: Iterable[tuple[Place, str | None]]) -> None:
    """Jobs that are run again bring their rates along, where they were forgotten."""
    for place, text in places:
        if text is not None:
            key = read(transaction, place)
            if key.by_jobs is None:
                rate = decode_job_rate(text).rate
                change(transaction, key, by_jobs=rate, by_operator=key.by_operator)


def change(
    transaction: Transaction, key: KeyState, *, by_jobs: Rate | None, by_operator: Rate | None
) -> None:
    """Set what jobs and an operator say. What has started counts by the new rate."""
    before, now = key.rate, transaction.now
    key.by_jobs, key.by_operator = by_jobs, by_operator
    after = key.rate
    if before is not None and after is not None and after != before:
        key.tat = now + max(key.tat - now, 0.0) / before.interval * after.interval
    if after != before:
        look_again(transaction, key)
    key.write(transaction)


def look_again(transaction: Transaction, key: KeyState) -> None:
    """Have claims look again at the jobs of a key that are parked. The caller writes the key."""
    key.line_at = 0.0
    queue, lane = key.place
    transaction.connection.execute(sql.parked_again, (transaction.now, queue, lane))
    transaction.made_ready.add(queue)


def move_up(transaction: Transaction, places: Iterable[Place]) -> None:
    """Jobs of these lanes that may have been parked are gone: those behind them move up."""
    for place in places:
        key = read(transaction, place)
        if key.found:
            look_again(transaction, key)
            key.write(transaction)


def hold(transaction: Transaction, holds: dict[Place, float]) -> None:
    """Start nothing of these keys for so many seconds, or longer if that was said before."""
    for place, seconds in holds.items():
        key = read(transaction, place)
        until = transaction.now + kept_delay(seconds)
        if until > key.held_until:
            key.held_until = until
            key.write(transaction)


def set_rate(transaction: Transaction, queue: str, lane: str, rate: Rate | None) -> None:
    """What an operator says; None: nothing any more."""
    key = read(transaction, (queue, lane))
    change(transaction, key, by_jobs=key.by_jobs, by_operator=rate)


def hold_lane(transaction: Transaction, queue: str, lane: str, seconds: float) -> None:
    """Start nothing of a key for so many seconds, whatever was said before."""
    key = read(transaction, (queue, lane))
    seconds = kept_delay(seconds)
    key.held_until = transaction.now + seconds if seconds > 0 else 0.0
    look_again(transaction, key)
    key.write(transaction)


def rates(
    transaction: Transaction, *, queue: str | None = None, lane: str | None = None, limit: int = 100
) -> list[RateView]:
    """The keys that have a rate or a hold."""
    now = transaction.now
    asked = (queue, queue, lane, lane, limit)
    found = transaction.connection.execute(sql.rate_list, asked).fetchall()
    views = []
    for row in found:
        key = KeyState((row[0], row[1]), row)
        opens = key.opens_at(key.rate)
        views.append(
            RateView(
                queue=row[0],
                lane=row[1],
                rate=key.rate,
                by_operator=key.by_operator is not None,
                next_at=moment(opens) if opens > now else None,
                held_until=moment(key.held_until) if key.held_until > now else None,
            )
        )
    return views


def find_idle(transaction: Transaction, after: Place, limit: int) -> list[Place]:
    """Keys behind one of them that may be forgotten, in their order. Only reads."""
    values = (*after, transaction.now, limit)
    return transaction.connection.execute(sql.rates_idle, values).fetchall()


def forget(transaction: Transaction, places: list[Place]) -> None:
    """Forget those of these keys that are still idle."""
    now = transaction.now
    transaction.connection.executemany(sql.rate_forget, [(*place, now) for place in places])
