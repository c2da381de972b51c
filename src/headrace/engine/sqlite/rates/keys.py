"""Rates of lanes and queues: who sets them and holds them, and what people see."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates.state import (
    JobRate,
    KeyState,
    Place,
    decode_job_rate,
    read,
)
from headrace.engine.sqlite.rows import moment
from headrace.engine.sqlite.sql import sql
from headrace.errors import InvalidSetting
from headrace.model.job import NewJob
from headrace.model.limits.rate import CLOCK_STEP_SECONDS, Rate, RateView
from headrace.model.times import kept_delay

# Where jobs change the rate of a lane, so many that are parked are looked at again at once. The
# others are when their turn comes: claims see to the best one that is parked.
LOOK_AGAIN_AT_MOST = 1_000
ALL = -1


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
    transaction: Transaction,
    key: KeyState,
    *,
    by_jobs: Rate | None,
    by_operator: Rate | None,
    at_most: int = LOOK_AGAIN_AT_MOST,
) -> None:
    """Set what jobs and an operator say. What has started counts by the new rate."""
    before, now = key.rate, transaction.now
    key.by_jobs, key.by_operator = by_jobs, by_operator
    after = key.rate
    if after != before:
        key.scale(before, after, now)
        look_again(transaction, key, at_most)
    key.write(transaction)


def look_again(transaction: Transaction, key: KeyState, at_most: int = ALL) -> None:
    """Have claims look again at the best jobs of a key that are parked. The caller writes it."""
    queue, lane = key.place
    values = (transaction.now, queue, lane, at_most)
    found = transaction.connection.execute(sql.parked_again, values).rowcount
    if found != at_most:
        key.line_at = 0.0
    transaction.made_ready.add(queue)


def move_up(transaction: Transaction, places: Iterable[Place]) -> None:
    """Jobs of these lanes that may have been parked are gone: the best of the others has its time.
    The claims that start it see to the next.
    """
    for place in places:
        key = read(transaction, place)
        if not key.found:
            continue
        now, best = transaction.now, None
        for best in transaction.connection.execute(sql.parked_line, (*place, now)):
            opens = key.opens_for(best, now)
            if opens < best[1]:
                transaction.connection.execute(sql.parked_until, (opens, best[0]))
                transaction.made_ready.add(place[0])
            break
        if best is None:
            key.line_at = 0.0
            key.changed = True
        if key.changed:
            key.write(transaction)


def set_clocks(transaction: Transaction, places: list[Place]) -> None:
    """The clock has gone back behind what these keys have counted: who is parked does not wait for
    it to catch up.
    """
    for place in places:
        key = read(transaction, place)
        if key.changed:
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
    change(transaction, key, by_jobs=key.by_jobs, by_operator=rate, at_most=ALL)


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
    asked = (queue, queue, lane, lane, now, limit)
    found = transaction.connection.execute(sql.rate_list, asked).fetchall()
    views = []
    for row in found:
        key = KeyState((row[0], row[1]), row)
        key.set_clock(now)
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


def find_ahead(transaction: Transaction, after: Place, limit: int) -> list[Place]:
    """Keys behind one of them whose last start the clock has not reached, in their order."""
    values = (*after, transaction.now + CLOCK_STEP_SECONDS, limit)
    return transaction.connection.execute(sql.rates_ahead, values).fetchall()


def forget(transaction: Transaction, places: list[Place]) -> None:
    """Forget those of these keys that are still idle."""
    now = transaction.now
    transaction.connection.executemany(sql.rate_forget, [(*place, now) for place in places])
