"""Lanes: who holds a place, and who gets the next one.

Everything here runs inside the writer's transaction, so no other process can change a lane between
looking and acting. The invariants that each function leaves behind:

* `used` is the number of the lane's jobs that are ready, running or pinned; no row means none.
* If a place is free, nobody waits.
* Nobody who waits beats an unpinned ready job.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.thread import Transaction

Place = tuple[str, str]
"""A queue and a lane in it."""

LANE_READ = query("lane_read")
LANE_WRITE = query("lane_write")
PROMOTE = query("promote")
BEST_WAITING = query("best_waiting")
WORST_HEAD = query("worst_head")
PUT_BACK = query("put_back")


def read(transaction: Transaction, place: Place) -> tuple[int, int] | None:
    """The lane's width and how many places are used."""
    row: tuple[int, int] | None = transaction.connection.execute(LANE_READ, place).fetchone()
    return row


def write(transaction: Transaction, place: Place, width: int, used: int) -> None:
    """Remember a lane's width and how many places are used."""
    transaction.connection.execute(LANE_WRITE, (*place, width, used))


def release(transaction: Transaction, freed: Mapping[Place, int]) -> None:
    """Give freed places to those who wait."""
    for place, count in freed.items():
        row = read(transaction, place)
        if row is None:
            continue
        width, used = row
        left = used - count
        left += promote(transaction, place, width - left)
        # A place that is handed on leaves the count as it was: nothing to write.
        if left != used:
            write(transaction, place, width, left)


class Arrivals:
    """Jobs that have just begun to wait, by lane.

    One that is new sets the width of its lane; one that comes back only brings its width along in
    case the lane has been forgotten.
    """

    def __init__(self) -> None:
        self.widths: dict[Place, tuple[int, bool]] = {}

    def add(self, place: Place, width: int, *, new: bool) -> None:
        """Count one in."""
        if new or place not in self.widths:
            self.widths[place] = (width, new)

    def admit(self, transaction: Transaction, freed: Mapping[Place, int] | None = None) -> None:
        """Let them in, if they may; they may put a ready one back.

        Places of these lanes that others gave up at the same time are in `freed`.
        """
        for place, (brought, new) in self.widths.items():
            row = read(transaction, place)
            width_before, used_before = row or (brought, 0)
            width = brought if new else width_before
            used = used_before - (freed or {}).get(place, 0)
            used = arrange(transaction, place, width, used)
            if row is None or (width, used) != row:
                write(transaction, place, width, used)


def arrange(transaction: Transaction, place: Place, width: int, used: int) -> int:
    """Fill free places, then let better waiting jobs take the place of ready ones."""
    used += promote(transaction, place, width - used)
    while used >= width and _put_back_beaten(transaction, place):
        used -= 1
        used += promote(transaction, place, width - used)
    return used


def promote(transaction: Transaction, place: Place, count: int) -> int:
    """Make up to `count` waiting jobs ready, the best first; answers how many."""
    if count <= 0:
        return 0
    moved = transaction.connection.execute(PROMOTE, (*place, count)).rowcount
    if moved:
        transaction.made_ready.add(place[0])
    return moved


def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether (priority, seq) `one` goes before `other`."""
    return (-one[0], one[1]) < (-other[0], other[1])


def worst_head(transaction: Transaction, place: Place) -> tuple[int, int] | None:
    """The (priority, seq) of the ready job that would be put back first."""
    row: tuple[int, int] | None = transaction.connection.execute(WORST_HEAD, place).fetchone()
    return row


def _put_back_beaten(transaction: Transaction, place: Place) -> bool:
    worst = worst_head(transaction, place)
    best = transaction.connection.execute(BEST_WAITING, place).fetchone()
    if worst is None or best is None or not beats(best, worst):
        return False
    transaction.connection.execute(PUT_BACK, (worst[1],))
    return True
