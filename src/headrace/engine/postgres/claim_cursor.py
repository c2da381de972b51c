"""Where to begin to read the line of ready jobs when dead rows pile up in front of it. Pure.

A claimed job leaves a dead row behind, and an entry in the index by which ready jobs are found.
While somebody keeps an old transaction open the server cannot clear them, and every claim walks
over all that were claimed since. So when looking takes long, most looks begin at the first job that
the last one found. Jobs that come later come behind it; those that become ready again in front of
it wait for the next look at everything, which is made as often as its cost allows.
"""

from __future__ import annotations

# At most a twentieth of the time goes into looks at everything, a fifth if there was nothing else.
SHARE = 20
SHARE_WHEN_SHORT = 4
SHORTEST = 1.0
SHORTEST_WHEN_SHORT = 0.1


class Line:
    """The line of some queues, as one worker reads it."""

    __slots__ = ("_first", "_looked_at", "_next", "_spent")

    def __init__(self) -> None:
        self._first = 0
        self._spent = 0.0
        self._looked_at = 0.0
        self._next = 0.0

    def begin(self, now: float) -> int:
        """Where to begin: 0 at the front, else with the job of that number."""
        return self._first if now < self._next else 0

    def forget(self) -> None:
        """Look at everything next: on another server jobs may have other numbers."""
        self._next = 0.0

    def found(
        self, now: float, *, begun: int, first: int | None, short: bool, spent: float
    ) -> None:
        """A look that began there has found jobs, the first with this number, fewer than wanted if
        `short`. `spent` is how many seconds it took, 0 if not many.
        """
        if begun == 0:
            self._spent, self._looked_at = spent, now
            self._next = now + max(SHARE * spent, SHORTEST) if spent else 0.0
        if first is not None:
            self._first = first
        if short:
            pause = max(SHARE_WHEN_SHORT * self._spent, SHORTEST_WHEN_SHORT)
            self._next = min(self._next, self._looked_at + pause)
