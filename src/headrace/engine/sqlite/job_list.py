"""Lists and counts of jobs. Every function here only reads."""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.engine.sqlite import views
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import sql
from headrace.engine.stored_text import checked_cursor
from headrace.model.job import JobFilter
from headrace.model.status import STATES, State, Status
from headrace.model.views import JobCount, JobPage

# Above every id: ids are hexadecimal.
AFTER_EVERY_ID = "~"
UNFINISHED = frozenset({State.SCHEDULED, State.WAITING, State.READY, State.RUNNING})
FINISHED = frozenset(State) - UNFINISHED
# So many jobs are sorted rather than looked for among all others: unfinished ones, and those that
# finished in the time asked for.
FEW = 1_000
FEW_FINISHED = 10_000
MOST_AT_ONCE = 10_000
# Numbers grow with the time of finishing, unless the clock was set back: by less than this, nothing
# is missed.
SET_BACK_SECONDS = 60.0
LAST_NUMBER = 2**63 - 1

_decode_ids = msgspec.json.Decoder(list[str]).decode


def list_jobs(
    transaction: Transaction,
    filter: JobFilter,
    *,
    cursor: str | None = None,
    limit: int = 50,
    brief: bool = False,
    look: int | None = None,
) -> JobPage:
    """A page of jobs by descending id."""
    walks = _walks(transaction.connection, filter, checked_cursor(cursor), look or 0)
    # One more than asked for tells whether there is a next page.
    found, reached = _go(walks, step=limit + 1, look=look, enough=limit + 1)
    ids = sorted((each for each in found if each >= reached), reverse=True)
    page = ids[:limit]
    after = (page[-1] if page else None) if len(ids) > limit else reached or None
    return JobPage(views.get(transaction, page, brief=brief), after)


def count_jobs(transaction: Transaction, filter: JobFilter, *, look: int = 10_000) -> JobCount:
    """How many match among the newest."""
    if filter == JobFilter():
        # All match: nobody has to look at them.
        [(count,)] = transaction.connection.execute(sql.job_count, (look + 1,)).fetchall()
        return JobCount(min(count, look), count <= look)
    walks = _walks(transaction.connection, filter, None, look)
    found, _ = _go(walks, step=look, look=look)
    return JobCount(len(found), all(walk.done or not walk.go(1)[0] for walk in walks))


class _Walk:
    """The jobs that one statement finds, by descending id. `position` is the last one looked at."""

    def __init__(
        self, connection: sqlite3.Connection, statement: str, values: dict[str, Any]
    ) -> None:
        self._connection = connection
        self._statement = statement
        self._values = values
        self._left = values.get("total", math.inf)
        # Where all are sorted each time, a long step costs no more than a short one.
        self.least = MOST_AT_ONCE if statement in (sql.list_in_states, sql.list_window) else 1
        self.position = values["cursor"]
        self.done = False

    def go(self, step: int) -> tuple[int, list[str]]:
        """Look at the next ones; answers how many there were, and those that match."""
        values = self._values | {"cursor": self.position, "step": step}
        [(count, lowest, ids)] = self._connection.execute(self._statement, values).fetchall()
        self.position = lowest or self.position
        self._left -= count
        self.done = count < step or self._left <= 0
        return count, _decode_ids(ids)


def _go(
    walks: Sequence[_Walk], *, step: int, look: int | None, enough: float = math.inf
) -> tuple[list[str], str]:
    """Look at jobs, the newest of all walks first, until enough match or `look` were seen. Answers
    those that match, and the id down to which none is missing: "" if there are no others.
    """
    found: list[str] = []
    left = math.inf if look is None else look
    # Each goes a step in any case: where one stands still, all do.
    share = left // max(len(walks), 1)
    for walk in walks:
        count, ids = walk.go(max(int(min(max(step, walk.least), share)), 1))
        found, left = found + ids, left - count
    while True:
        going = [walk for walk in walks if not walk.done]
        reached = max((walk.position for walk in going), default="")
        if not going or left <= 0 or sum(each >= reached for each in found) >= enough:
            return found, reached
        first = max(going, key=lambda walk: walk.position)
        step = min(step * 2, MOST_AT_ONCE)
        count, ids = first.go(int(min(max(step, first.least), left)))
        found, left = found + ids, left - count


def _walks(
    connection: sqlite3.Connection, filter: JobFilter, cursor: str | None, look: int
) -> list[_Walk]:
    """The statements that find jobs in these states by the shortest way."""
    states = {state for status in filter.statuses or tuple(Status) for state in STATES[status]}
    if filter.error_types:
        states -= {State.COMPLETED, State.CANCELLED}
    if filter.worker is not None:
        states -= UNFINISHED - {State.RUNNING}
    if filter.finished_after is not None or filter.finished_before is not None:
        states -= UNFINISHED
    values: dict[str, Any] = {
        "cursor": cursor or AFTER_EVERY_ID,
        "queues": _array(filter.queues),
        "tasks": _array(filter.tasks),
        "lane": filter.lane,
        "key": filter.key,
        "source": filter.source,
        "parent": filter.parent,
        "group": filter.group,
        "created_after": _seconds(filter.created_after),
        "created_before": _seconds(filter.created_before),
        "error_types": _array(filter.error_types),
        "worker": filter.worker,
        "finished_after": _seconds(filter.finished_after),
        "finished_before": _seconds(filter.finished_before),
    }
    chosen = [
        *_unfinished(connection, filter, states & UNFINISHED, max(look, FEW)),
        *_finished(connection, filter, states & FINISHED),
    ]
    return [_Walk(connection, statement, values | more) for statement, more in chosen]


_Chosen = Iterator[tuple[str, dict[str, Any]]]


def _unfinished(
    connection: sqlite3.Connection, filter: JobFilter, states: set[State], few: int
) -> _Chosen:
    values: dict[str, Any] = {"states": None if states == UNFINISHED else _array(sorted(states))}
    if not states:
        return
    if filter.key is not None:
        yield sql.list_unfinished_keyed, values
    elif filter.parent is not None:
        yield sql.list_unfinished_children, values
    else:
        wanted = {state.name.lower(): state in states for state in UNFINISHED}
        if states != UNFINISHED:
            asked = wanted | {"most": few + 1}
            [(count,)] = connection.execute(sql.in_states_count, asked).fetchall()
            if count <= few:
                yield sql.list_in_states, values | wanted | {"total": count}
                return
        yield sql.list_unfinished, values


def _finished(connection: sqlite3.Connection, filter: JobFilter, states: set[State]) -> _Chosen:
    values: dict[str, Any] = {"states": None if states == FINISHED else _array(sorted(states))}
    if not states:
        return
    if filter.key is not None:
        yield sql.list_finished_keyed, values
        return
    if filter.parent is not None:
        yield sql.list_finished_children, values
        return
    first, last = _numbers(connection, filter)
    values |= {"first": first, "last": last}
    if State.COMPLETED in states:
        yield sql.list_window if last - first < FEW_FINISHED else sql.list_finished, values
    else:
        for state in sorted(states):
            yield sql.list_unsuccessful, values | {"states": _array([state])}


def _numbers(connection: sqlite3.Connection, filter: JobFilter) -> tuple[int, int]:
    """The first and the last number that a job may have which finished in the time asked for."""
    after, before = _seconds(filter.finished_after), _seconds(filter.finished_before)
    first, last = 0, LAST_NUMBER

    def finished_at(number: int) -> float:
        row = connection.execute(sql.history_at, (number,)).fetchone()
        return math.inf if row is None else row[1]

    if after is not None or before is not None:
        [(newest,)] = connection.execute(sql.history_last).fetchall()
        numbers = range((newest or 0) + 1)
        if after is not None:
            first = bisect_left(numbers, after - SET_BACK_SECONDS, key=finished_at)
        if before is not None:
            last = bisect_left(numbers, before + SET_BACK_SECONDS, key=finished_at)
    return first, last


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _array(values: Sequence[Any]) -> str | None:
    return msgspec.json.encode(values).decode() if values else None
