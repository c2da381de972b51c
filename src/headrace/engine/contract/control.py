"""What people do to jobs and queues: cancel, rerun, signal, pause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.model.limits.rate import Rate
from headrace.model.views import (
    Delivery,
    RecordChange,
)


class Steering(Protocol):
    """What people do to jobs and queues."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        """Cancel jobs: True for one that is cancelled now, False for a running one that has been
        asked to stop. Finished and unknown ones are left out. Only the latter show
        `cancel_requested`, also when they are finished.
        """

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        """Run finished jobs again, and scheduled ones now. Returns the ids moved.

        A finished job starts again at attempt 0 with a place at the end of its lane; its entries,
        attempt log and growing token are kept. Progress, stage, message, error and result are as
        of a new job. A scheduled one keeps them: it only becomes due.
        """

    async def rerun_unchanged(self, tokens: Mapping[str, int]) -> list[str]:
        """`rerun` those of these finished jobs that have the token given for their id. Returns the
        ids moved. The others are unknown, not finished, or were run again since, and are left
        alone: of several callers at once one moves a job.
        """

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        """Deliver an event to a job that has not finished: kept as its entry (`EVENT`, event), with
        the token that the job has now. The first of a name counts: a second is "already" there,
        also if the job has finished since. The job is not woken by this alone (`wake`).
        """

    async def rerun_without(
        self, job_id: str, names: Sequence[tuple[str, str]], *, token: int,
        record: RecordChange | None = None,
    ) -> bool:  # fmt: skip
        """`rerun` a finished job without some of its entries, given by kind and name, and write a
        record, whatever version is there: one step. False, and nothing is changed, if it is
        unknown, not finished, or has another token: it was run again since. So of
        several callers at once one is accepted. Names that do not exist are fine.
        """

    async def set_rate(self, queue: str, lane: str, rate: Rate | None) -> None:
        """Set the rate of a lane for all its jobs, whatever they say, until None takes it back.
        The lane "" is the queue: all its jobs count.
        """

    async def hold_lane(self, queue: str, lane: str, seconds: float) -> None:
        """Start nothing of a lane for so many seconds, whatever was said before; 0 ends a hold.
        The lane "" is the queue.
        """

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume claims from a queue. Running ones go on."""
