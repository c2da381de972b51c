"""Outcomes that a store has not recorded yet, because it did not answer: kept until it has."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headrace.model.outcome import Failed, Failure, Settlement

BATCH = 500

Attempt = tuple[str, int]


class Debts:
    """In their order. Whoever looks for lost claims must not take one of these for one."""

    def __init__(self) -> None:
        self._left: deque[Settlement] = deque()
        self._attempts: set[Attempt] = set()
        self._limit = BATCH
        self._refused: list[str] = []

    def __len__(self) -> int:
        return len(self._left)

    @property
    def attempts(self) -> frozenset[Attempt]:
        """Return the attempts whose outcome is here."""
        return frozenset(self._attempts)

    def add(self, settlements: Sequence[Settlement]) -> None:
        """Keep these."""
        self._left.extend(settlements)
        self._attempts.update((each.job_id, each.token) for each in settlements)

    def sent_late(self, settlements: Sequence[Settlement]) -> None:
        """Note that these are on their way in a call that nobody waits for."""
        self._attempts.update((each.job_id, each.token) for each in settlements)

    def paid_late(self, settlements: Sequence[Settlement], refused: Sequence[str]) -> None:
        """They have arrived."""
        self._attempts.difference_update((each.job_id, each.token) for each in settlements)
        self._refused += refused

    def still_owed(self, settlements: Sequence[Settlement]) -> None:
        """They have not, or it is not known: they go before all others."""
        self._left.extendleft(reversed(settlements))
        self._attempts.update((each.job_id, each.token) for each in settlements)

    def first(self) -> list[Settlement]:
        """Return the next ones to be recorded; they stay until they are `paid`."""
        return [self._left[at] for at in range(min(self._limit, len(self._left)))]

    def one_by_one(self) -> None:
        """One of the first cannot be recorded: find it."""
        self._limit = max(self._limit // 2, 1)

    def paid(self, settlements: Sequence[Settlement], refused: Sequence[str]) -> None:
        """The store has answered to the first ones."""
        for each in settlements:
            self._left.popleft()
            self._attempts.discard((each.job_id, each.token))
        self._refused += refused
        self._limit = min(self._limit * 2, BATCH)

    def replace_first(self) -> None:
        """Let the job fail whose outcome cannot be recorded, so that it ends."""
        each = self._left.popleft()
        failure = Failure(
            "SettleError",
            "the handler ended, but the store could not record its outcome "
            f"({type(each.outcome).__name__}); see the worker's log",
        )
        if isinstance(each.outcome, Failed) and each.outcome.failure == failure:
            self._attempts.discard((each.job_id, each.token))
            return  # not even that: its lease will lapse with its worker
        self._left.appendleft(Settlement(each.job_id, each.token, Failed(failure)))

    def take_refused(self) -> tuple[str, ...]:
        """Return the jobs whose outcomes were refused since the last call."""
        refused, self._refused = tuple(self._refused), []
        return refused
