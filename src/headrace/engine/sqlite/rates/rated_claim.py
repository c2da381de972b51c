"""Which ready jobs may start where there are rates or holds, and which are parked."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates.state import KeyState, Place, decode_job_rate, rounded_up
from headrace.engine.sqlite.sql import sql
from headrace.model.limits.rate import Rate

# So many ready jobs a claim looks at, at most; and so many that are due again it makes ready.
LOOK_AT_MOST = 1_000
# So many that it leaves for workers with free slots it passes over.
LEAVE_AT_MOST = 200
# Of so many that are parked it looks for the first of its own queues.
NEXT_AT_MOST = 100

Line = tuple[str, ...]
"""A queue, or a queue and a task of reserved jobs."""


class ReadyJob(NamedTuple):
    """A ready job, as rated_ready.sql answers it: they sort by priority, then arrival."""

    worse: int
    seq: int
    queue: str
    lane: str | None
    task: str
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

    def __init__(
        self,
        transaction: Transaction,
        worker_id: str,
        named: Sequence[str] | None,
        limit: int,
        free: int | None,
    ) -> None:
        self.transaction = transaction
        self.worker_id = worker_id
        self.named = named
        self.now = transaction.now
        self.limit = limit
        self.free = math.inf if free is None else free
        self.keys: dict[Place, ClaimedKey | None] = {}
        self.closed: set[str] = set()
        self.opens: list[float] = []
        self.chosen: list[int] = []
        self.parked: list[tuple[float, int]] = []
        self.left: set[str] = set()
        # Keys of which some are left for workers with free slots.
        self.left_keys: set[Place] = set()
        self.passed = 0
        # Those that this worker cannot run, though they would count as starts.
        self.unknown: list[ReadyJob] = []
        # The tasks that it knows, None: all; in a list of one, once they were read.
        self._known: list[frozenset[str] | None] = []
        # Whether ready jobs may be left that nobody has looked at.
        self.cut = False

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
                self.cut = True
                break
        if self.parked:
            self.transaction.connection.executemany(sql.park, self.parked)
        if self.unknown:
            self._reserve()
        for key in list(self.keys.values()):
            if key is not None and key.rate is not None and key.place not in self.left_keys:
                self._see_to_line(key)
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
            if line[0] in self.closed:
                return
            yield row

    def _close(self, queue: str, opens: float) -> None:
        self.closed.add(queue)
        self.opens.append(opens)

    def _decide(self, ready: ReadyJob) -> None:
        """Choose a job, park it, or leave it."""
        now, queue = self.now, ready.queue
        if queue in self.closed:
            return
        job = None if ready.rate is None else decode_job_rate(ready.rate)
        cost = 1.0 if job is None else job.cost
        whole = self._whole(queue)
        if whole is not None and (opens := whole.opens_at(whole.rate, cost)) > now:
            self._close(queue, opens)
            return
        key = None if ready.lane is None else self._key((queue, ready.lane))
        rate = None if key is None else key.counts(job, ready.attempt)
        counted = rate is not None or (whole is not None and whole.rate is not None)
        if counted and not self._knows(ready.task):
            self.unknown.append(ready)
            return
        if counted and self.free <= 0:
            self.left.add(queue)
            if key is not None:
                self.left_keys.add(key.place)
            self.passed += 1
            return
        if key is not None:
            slot = key.slot((ready.worse, ready.seq), rate, now, cost)
            if slot > now:
                self.parked.append((rounded_up(slot), ready.seq))
                return
            key.start(rate, now, cost)
        self._choose(ready.seq, whole, counted, cost)

    def _choose(self, seq: int, whole: ClaimedKey | None, counted: bool, cost: float) -> None:
        if whole is not None:
            whole.start(whole.rate, self.now, cost)
        if counted:
            self.free -= 1
        self.chosen.append(seq)

    def _see_to_line(self, key: ClaimedKey) -> None:
        """Start the best that are parked of a key, as far as they may start now, and see that the
        next has a time that is not later than it may: those before it may have been cancelled, or
        the rate may have become faster.
        """
        now, (queue, lane) = self.now, key.place
        if not lane:
            return
        whole = self._whole(queue)
        values = (queue, lane, now)
        for row in self.transaction.connection.execute(sql.parked_line, values):
            seq, run_at, task, attempt, text = row
            job = None if text is None else decode_job_rate(text)
            cost = 1.0 if job is None else job.cost
            opens = key.opens_for(row, now)
            free = not self.cut and len(self.chosen) < self.limit and self.free > 0
            free = free and queue not in self.closed and self._knows(task)
            if opens > now or not free or (whole and whole.opens_at(whole.rate, cost) > now):
                if opens < run_at:
                    self.transaction.connection.execute(sql.parked_until, (opens, seq))
                return
            key.start(key.counts(job, attempt), now, cost)
            self._choose(seq, whole, True, cost)
        # Nobody is parked any more.
        if key.line_at:
            key.line_at, key.changed = 0.0, True

    def _knows(self, task: str) -> bool:
        """Whether this worker runs such jobs, as far as it has told. One that it would give back
        would have used a start.
        """
        if not self._known:
            values = (self.worker_id,)
            [(text,)] = self.transaction.connection.execute(sql.known_tasks, values).fetchall()
            self._known.append(None if text is None else frozenset(msgspec.json.decode(text)))
        [known] = self._known
        return known is None or task in known

    def _reserve(self) -> None:
        """Leave jobs for workers that know their tasks, as if they had been given back."""
        transaction = self.transaction
        execute = transaction.connection.execute
        lines = {(job.queue, job.task) for job in self.unknown}
        if not all(execute(sql.reserved_exists, line).fetchone()[0] for line in lines):
            execute(sql.workers_offer_anew)
        execute(sql.reserve, (msgspec.json.encode([job.seq for job in self.unknown]).decode(),))
        queues = {queue for queue, _ in lines}
        transaction.made_ready |= queues
        transaction.reserved |= queues

    def _whole(self, queue: str) -> ClaimedKey | None:
        return self._key((queue, ""))

    def _key(self, place: Place) -> ClaimedKey | None:
        if place not in self.keys:
            row = self.transaction.connection.execute(sql.rate_read, place).fetchone()
            key = None if row is None else ClaimedKey(place, row)
            if key is not None:
                key.set_clock(self.now)
            self.keys[place] = key
        return self.keys[place]

    def _write(self) -> None:
        if self.chosen:
            chosen = msgspec.json.encode(self.chosen).decode()
            self.transaction.connection.execute(sql.unpark, (self.now, chosen))
        for key in self.keys.values():
            if key is not None and key.changed:
                key.write(self.transaction)

    def _next_in(self) -> float | None:
        """In how many seconds one may start that has to wait; too early if very many others are
        parked before it in other queues.
        """
        times = list(self.opens)
        parked = self.transaction.connection.execute(sql.parked_next, (NEXT_AT_MOST,)).fetchall()
        for run_at, queue in parked:
            if self.named is None or queue in self.named:
                times.append(run_at)
                break
        else:
            if len(parked) == NEXT_AT_MOST:
                times.append(parked[-1][0])
        return max(min(times) - self.now, 0.0) if times else None


def make_due_ready(transaction: Transaction) -> None:
    """Make parked jobs ready whose time has come."""
    values = (transaction.now, LOOK_AT_MOST)
    for (queue,) in transaction.connection.execute(sql.parked_due, values).fetchall():
        transaction.made_ready.add(queue)
