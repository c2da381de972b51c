"""Lanes: who holds a place, and who gets the next one.

Everything here runs inside the writer's transaction, so no other process can change a lane between
looking and acting. The invariants that each function leaves behind:

* `used` is the number of the lane's jobs that are ready, running or pinned; no row means none.
* If a place is free, nobody waits.
* Nobody who waits beats an unpinned ready job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import sql

Place = tuple[str, str]
"""A queue and a lane in it."""


class LaneChanges:
    """What becomes of lanes, gathered so that many are written in few statements."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._promoted: list[int] = []
        self._arrived: list[int] = []
        self._lanes: list[tuple[str, str, int, int]] = []

    def promote(self, place: Place, seq: int, *, arrived: bool = False) -> None:
        """Make this waiting job ready. One that has only just `arrived` has not waited."""
        (self._arrived if arrived else self._promoted).append(seq)
        self._transaction.made_ready.add(place[0])

    def write(self, place: Place, width: int, used: int) -> None:
        """Remember a lane's width and how many places are used."""
        self._lanes.append((*place, width, used))

    def apply(self) -> None:
        """Write everything down."""
        connection = self._transaction.connection
        if self._promoted:
            chosen = msgspec.json.encode(self._promoted).decode()
            connection.execute(sql.promote_chosen, (self._transaction.now, chosen))
        if self._arrived:
            chosen = msgspec.json.encode(self._arrived).decode()
            connection.execute(sql.promote_arrived, (chosen,))
        if self._lanes:
            connection.executemany(sql.lane_write, self._lanes)


class LaneArrivals:
    """Jobs that have just begun to wait, by lane.

    One that is new sets the width of its lane, the last of them; one that comes back only brings
    its width along in case nobody is in the lane, and there the first counts.
    """

    def __init__(self) -> None:
        self.widths: dict[Place, tuple[int, bool]] = {}
        self._seqs: dict[Place, list[int]] = {}

    def add(self, place: Place, width: int, seq: int, *, new: bool) -> None:
        """Count one in."""
        self._seqs.setdefault(place, []).append(seq)
        if new or place not in self.widths:
            self.widths[place] = (width, new)

    def admit(self, transaction: Transaction, freed: Mapping[Place, int] | None = None) -> None:
        """Let them in, if they may; they may put a ready one back.

        Places of these lanes that others gave up at the same time are in `freed`.
        """
        changes = LaneChanges(transaction)
        places = list(self.widths)
        for key, width_before, used_before, first, beats in _look(
            transaction, sql.lanes_look_heads, places
        ):
            place = places[key]
            brought, new = self.widths[place]
            width = brought if new or not used_before else width_before
            used = (used_before or 0) - (freed or {}).get(place, 0)
            if first is not None and used == 0 and width == 1:
                changes.promote(place, first, arrived=first in self._seqs[place])
                used = 1
            elif first is not None and (used < width or beats):
                used = arrange(transaction, place, width, used, self._seqs[place])
            if (width, used) != (width_before, used_before):
                changes.write(place, width, used)
        changes.apply()


def release(transaction: Transaction, freed: Mapping[Place, int]) -> None:
    """Give freed places to those who wait."""
    changes = LaneChanges(transaction)
    places = list(freed)
    for key, width, used_before, first in _look(transaction, sql.lanes_look, places):
        place = places[key]
        used = used_before - freed[place]
        if first is not None:
            if used == width - 1:
                changes.promote(place, first)
                used += 1
            else:
                used += promote(transaction, place, width - used)
        # A place that is handed on leaves the count as it was: nothing to write.
        if used != used_before:
            changes.write(place, width, used)
    changes.apply()


def arrange(
    transaction: Transaction, place: Place, width: int, used: int, arrived: Sequence[int]
) -> int:
    """Fill free places, then let better waiting jobs take the place of ready ones."""
    used += promote(transaction, place, width - used, arrived)
    while used >= width and _put_back_beaten(transaction, place):
        used -= 1
        used += promote(transaction, place, width - used, arrived)
    return used


def promote(transaction: Transaction, place: Place, count: int, arrived: Sequence[int] = ()) -> int:
    """Make up to `count` waiting jobs ready, the best first; answers how many. Those that have only
    just `arrived` have not waited.
    """
    if count <= 0:
        return 0
    values = (msgspec.json.encode(arrived).decode(), transaction.now, *place, count)
    moved = transaction.connection.execute(sql.promote, values).rowcount
    if moved:
        transaction.made_ready.add(place[0])
    return moved


def _look(transaction: Transaction, statement: str, places: list[Place]) -> list[tuple[Any, ...]]:
    if not places:
        return []
    asked = msgspec.json.encode(places).decode()
    return transaction.connection.execute(statement, (asked,)).fetchall()


def _put_back_beaten(transaction: Transaction, place: Place) -> bool:
    worst = transaction.connection.execute(sql.worst_head, place).fetchone()
    best = transaction.connection.execute(sql.best_waiting, place).fetchone()
    if worst is None or best is None or (-best[0], best[1]) > (-worst[0], worst[1]):
        return False
    transaction.connection.execute(sql.put_back, (worst[1],))
    return True


def find_idle(transaction: Transaction, after: Place, limit: int) -> list[Place]:
    """Idle lanes behind one of them, in their order. Only reads."""
    return transaction.connection.execute(sql.lanes_idle, (*after, limit)).fetchall()


def forget(transaction: Transaction, places: list[Place]) -> None:
    """Forget those of these lanes that are still idle."""
    transaction.connection.executemany(sql.lane_forget, places)
