"""One call of a handler of chunks, and the attempts at its jobs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import JobConflict, LeaseLost
from headrace.orchestrator.running.attempt import Attempt, Reason
from headrace.task import Task

if TYPE_CHECKING:
    import asyncio

    from headrace.orchestrator.running.chunk_context import WorkerChunkJob


class ChunkAnswer(msgspec.Struct, eq=False):
    """How a job of a chunk ended, in the words of its handler: a result, or an error."""

    value: Any = None
    error: BaseException | None = None
    traceback: TracebackType | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            self.traceback = self.error.__traceback__


@dataclass(slots=True, eq=False, kw_only=True)
class ChunkMember(Attempt):
    """The attempt at one job of a chunk. Stopping it tells the handler, and stops nothing else.

    It has one answer: the first counts, whoever gives it and in whichever thread.
    """

    call: ChunkAttempt
    answer: ChunkAnswer | None = None
    # What the handler sees of it; made when the call begins.
    seen_as: WorkerChunkJob = field(init=False)
    # Middleware that waits for the answer.
    waiter: asyncio.Future[Any] | None = None

    def interrupt(self, reason: Reason, *, now: float, patience: float) -> None:
        """Tell the handler. The first reason counts, except that a lost lease overrides it."""
        if self.over or (self.reason is not None and reason is not Reason.LOST):
            return
        # First: a thread that sees that this job is to stop sees whether all are.
        self.call.member_stops(self, reason, now, patience)
        self.reason = reason
        self.patience_until = now + patience

    def give(self, answer: ChunkAnswer) -> bool:
        """Take an answer. Return False if there is one, or if the attempt is over."""
        with self.call.guard:
            if self.over or self.answer is not None:
                return False
            self.answer = answer
            return True

    def refuse(self) -> None:
        """Raise for an answer that was not taken, unless that is no concern of the handler: its
        middleware may have ended a job.
        """
        job = self.job
        if self.call.over:
            raise LeaseLost(f"attempt {job.attempt} of job {job.id} has ended")
        if self.answer is not None:
            raise JobConflict(f"job {job.id} has an outcome already: end each job of a chunk once")


@dataclass(slots=True, eq=False, kw_only=True)
class ChunkAttempt(Attempt):
    """A call that is running, in one slot. `job` is the first of its jobs: all have the same task
    and time limit.
    """

    handler: Task[..., Any] | None = None
    members: list[ChunkMember] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def member_stops(
        self, member: ChunkMember, reason: Reason, now: float, patience: float
    ) -> None:
        """Stop the call as well if there is nobody left to work for."""
        reasons = {
            reason if each is member else each.reason
            for each in self.members
            if each.answer is None and not each.over
        }
        if reasons and None not in reasons:
            lost = reasons == {Reason.LOST}
            self.interrupt(Reason.LOST if lost else Reason.CANCELLED, now=now, patience=patience)

    def unanswered(self) -> list[ChunkMember]:
        """Return the attempts that have no answer, after handing them the reason of the call."""
        found = [each for each in self.members if each.answer is None and not each.over]
        for each in found:
            if self.reason is not None and (each.reason is None or self.reason is Reason.LOST):
                each.reason = self.reason
        return found
