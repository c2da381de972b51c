"""Outcomes on their way to the engine. None leaves before the engine has answered."""

from __future__ import annotations

import logging
from collections import deque

from headrace.model.outcome import Completed, Failed, Failure, Settlement

log = logging.getLogger("headrace.settle")

BATCH = 600
BATCH_BYTES = 8 * 1_048_576
# An outcome that the engine chokes on is replaced after this many tries of its own, so that the
# job ends and the others are not held up for ever: soon if others were taken meanwhile, else
# after minutes of trying.
TRIES = 3
TRIES_WITHOUT_PROGRESS = 10


class SettleBuffer:
    """Keeps outcomes until an exchange has taken them; what was sent in vain is sent again.

    Tokens make that safe: an outcome that did arrive is refused the second time.
    """

    __slots__ = ("_limit", "_others_passed", "_suspects", "pending")

    def __init__(self) -> None:
        self.pending: deque[Settlement] = deque()
        self._limit = BATCH
        self._suspects: dict[tuple[str, int], int] = {}
        self._others_passed = False

    def __len__(self) -> int:
        return len(self.pending)

    @property
    def isolating(self) -> bool:
        """Whether an outcome is suspected to break its batch: claim nothing along with it."""
        return self._limit < BATCH and bool(self.pending)

    def take(self) -> list[Settlement]:
        """The next batch, bounded in number and size. Follow it by `sent` or `unsent`."""
        batch: list[Settlement] = []
        pending, size = self.pending, 0
        while pending and len(batch) < self._limit:
            outcome = pending[0].outcome
            if type(outcome) is Completed:
                size += len(outcome.result)
                if size > BATCH_BYTES and batch:
                    break
            batch.append(pending.popleft())
        return batch

    def sent(self, batch: list[Settlement]) -> None:
        """The engine has answered: the batch is done with."""
        if self._limit < BATCH:
            self._limit = min(self._limit * 2, BATCH)
            self._others_passed = True
            for settlement in batch:
                self._suspects.pop((settlement.job_id, settlement.token), None)

    def put_back(self, batch: list[Settlement], *, may_be_poisoned: bool) -> None:
        """The exchange raised. `suspicious`: the engine is there, so one of these may be to blame.

        Halving the batch finds it; it goes to the end of the line, and the others pass.
        """
        if not may_be_poisoned or not batch:
            self.pending.extendleft(reversed(batch))
            return
        if self._limit == BATCH:
            self._others_passed = False
        self._limit = max(len(batch) // 2, 1)
        if len(batch) > 1:
            self.pending.extendleft(reversed(batch))
            return
        settlement = batch[0]
        key = (settlement.job_id, settlement.token)
        tries = self._suspects[key] = self._suspects.get(key, 0) + 1
        if tries >= (TRIES if self._others_passed else TRIES_WITHOUT_PROGRESS):
            settlement = self._replaced(settlement)
        self.pending.append(settlement)

    def _replaced(self, settlement: Settlement) -> Settlement:
        log.error(
            "The engine cannot record the outcome of job %s (%s); recording a failure instead",
            settlement.job_id,
            type(settlement.outcome).__name__,
        )
        failure = Failure(
            "SettleError",
            "the handler ended, but the engine could not record its outcome "
            f"({type(settlement.outcome).__name__}); see the worker's log",
        )
        return Settlement(settlement.job_id, settlement.token, Failed(failure))
