"""Which ready jobs may start where there are rates or holds, and which are parked."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates.keys import JobRate, KeyState, Place, decode_job_rate
from headrace.engine.sqlite.sql import sql
from headrace.model.rate import Rate

# So many ready jobs a claim looks at, at most; and so many that are due again it makes ready.
LOOK_AT_MOST = 1_000
# So many that it leaves for workers with free slots it passes over.
LEAVE_AT_MOST = 200

Line = tuple[str, ...]
"""A queue, or a queue and a task of reserved jobs."""


class ReadyJob(NamedTuple):
    """A ready job, as rated_ready.sql answers it: they sort by priority, then arrival."""

    worse: int
    seq: int
    queue: str
    lane: str | None
    attempt: int
    rate: str | None


class ChosenJobs(NamedTuple):
    """The seqs of the jobs to claim, the lines that have none, the queues in which some were left
    ready for others, and in how many seconds it is worth asking again.
    """

    seqs: list[int]
    empty: set[Line]
    left: set[str]
    next_in: float | None


class ClaimedKey(KeyState):
    """The state of a key during one claim."""

    # From here on the better ones that have to wait are parked.
    front = 0.0
    # Somebody who counts has had to wait: all behind that one wait, too.
    blocked = False

    def slot(self, place: tuple[int, int], rate: Rate | None, now: float, cost: float) -> float:
        """Return when a job may start that has this place in line; not after now: at once."""
        opens = self.opens_at(rate, cost)
        if rate is None:
            return opens
        line = self.line_at > now
        behind = line and place > self.line_last
        if opens <= now and not behind and not self.blocked:
            return opens
        self.blocked = self.changed = True
        if line and not behind:
            # Better than the last of the line: it asks for the next slot.
            slot = max(opens, self.front, now)
            self.front = slot + cost * rate.interval
            return slot
        paid = self.line_tat if line else self.paid_at(rate)
        slot = max(rate.opens_at(paid, cost), self.held_until, self.line_at)
        self.line_tat = rate.after_start(paid, slot, cost)
        self.line_at, self.line_last = slot, place
        return slot


class RatedClaim:
    """One claim: goes through ready jobs, best first, and decides about each."""

    def __init__(self, transaction: Transaction, limit: int, free: int | None) -> None:
        self.transaction = transaction
        self.now = transaction.now
        self.limit = limit
        self.free = math.inf if free is None else free
        self.keys: dict[Place, ClaimedKey | None] = {}
        self.closed: set[str] = set()
        self.opens: list[float] = []
        self.chosen: list[int] = []
        self.parked: list[tuple[float, int]] = []
        self.left: set[str] = set()
        self.passed = 0

    def choose(self, queues: Iterable[str], reserved: Iterable[Line]) -> ChosenJobs:
        """Choose over the ready jobs of these queues and these lines of reserved ones."""
        found: set[Line] = set()
        lines: list[Line] = [*((name,) for name in queues), *reserved]
        looked = 0
        for row in heapq.merge(*(self._jobs(line, found) for line in lines)):
            looked += 1
            self._decide(ReadyJob(*row))
            full = len(self.chosen) == self.limit or self.passed == LEAVE_AT_MOST
            if full or looked == LOOK_AT_MOST:
                break
        self._write()
        again = bool(self.parked) and looked == LOOK_AT_MOST
        return ChosenJobs(
            self.chosen, set(lines) - found, self.left, 0.0 if again else self._next_in()
        )

    def _jobs(self, line: Line, found: set[Line]) -> Iterator[tuple[Any, ...]]:
        """The ready jobs of a line, best first, while its queue lets any start."""
        statement = sql.rated_ready if len(line) == 1 else sql.rated_reserved
        values = (*line, self.now, LOOK_AT_MOST)
        for row in self.transaction.connection.execute(statement, values):
            found.add(line)
            if self._is_closed(line[0]):
                return
            yield row

    def _is_closed(self, queue: str) -> bool:
        if queue not in self.closed:
            key = self._key((queue, ""))
            if key is not None and (opens := key.opens_at(key.rate)) > self.now:
                self._close(queue, opens)
        return queue in self.closed

    def _close(self, queue: str, opens: float) -> None:
        self.closed.add(queue)
        self.opens.append(opens)

    def _decide(self, ready: ReadyJob) -> None:
        """Choose a job, park it, or leave it."""
        now, queue = self.now, ready.queue
        if self._is_closed(queue):
            return
        job = None if ready.rate is None else decode_job_rate(ready.rate)
        cost = 1.0 if job is None else job.cost
        whole = self._key((queue, ""))
        if whole is not None and (opens := whole.opens_at(whole.rate, cost)) > now:
            self._close(queue, opens)
            return
        key = None if ready.lane is None else self._key((queue, ready.lane))
        rate = None if key is None else _rate_for(key, job, ready.attempt)
        counted = rate is not None or (whole is not None and whole.rate is not None)
        if counted and self.free <= 0:
            self.left.add(queue)
            self.passed += 1
            return
        if key is not None:
            slot = key.slot((ready.worse, ready.seq), rate, now, cost)
            if slot > now:
                self.parked.append((math.ceil(slot * 1e6) / 1e6, ready.seq))
                return
            key.start(rate, now, cost)
        if whole is not None:
            whole.start(whole.rate, now, cost)
        if counted:
            self.free -= 1
        self.chosen.append(ready.seq)

    def _key(self, place: Place) -> ClaimedKey | None:
        if place not in self.keys:
            row = self.transaction.connection.execute(sql.rate_read, place).fetchone()
            self.keys[place] = None if row is None else ClaimedKey(place, row)
        return self.keys[place]

    def _write(self) -> None:
        connection = self.transaction.connection
        if self.parked:
            connection.executemany(sql.park, self.parked)
        if self.chosen:
            connection.execute(sql.unpark, (msgspec.json.encode(self.chosen).decode(),))
        for key in self.keys.values():
            if key is not None and key.changed:
                key.write(self.transaction)

    def _next_in(self) -> float | None:
        [(parked,)] = self.transaction.connection.execute(sql.parked_next).fetchall()
        times = self.opens if parked is None else [*self.opens, parked]
        return max(min(times) - self.now, 0.0) if times else None


def _rate_for(key: ClaimedKey, job: JobRate | None, attempt: int) -> Rate | None:
    """The rate that a start of this job counts by, if it does."""
    if key.by_operator is None and job is None:
        return None
    if job is not None and attempt > 0 and not job.count_retries:
        return None
    return key.rate


def make_due_ready(transaction: Transaction) -> None:
    """Make parked jobs ready whose time has come."""
    values = (transaction.now, LOOK_AT_MOST)
    for (queue,) in transaction.connection.execute(sql.parked_due, values).fetchall():
        transaction.made_ready.add(queue)
