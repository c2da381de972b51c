"""The worker's implementation of `headrace.Chunk` and `headrace.ChunkJob`."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, overload

from headrace.errors import InvalidInput
from headrace.model.durable.followers import FollowOn
from headrace.model.job import NewJob
from headrace.model.limits.chunk import Chunk, ChunkJob
from headrace.orchestrator.running.chunk_attempt import ChunkAnswer, ChunkAttempt, ChunkMember
from headrace.orchestrator.running.context import JobContext

log = logging.getLogger("headrace.job")


class WorkerChunkJob(ChunkJob[Any]):
    """One job of a chunk. Works from the loop and from threads."""

    def __init__(
        self,
        member: ChunkMember,
        args: Any,
        make_context: Callable[[ChunkMember], JobContext],
        on_answer: Callable[[ChunkMember], None],
    ) -> None:
        job = member.job
        self.args = args
        self.job_id = job.id
        self.queue = job.queue
        self.attempt = job.attempt
        self.max_attempts = job.max_attempts
        self.token = job.token
        self.key = job.key or job.id
        self.lane = job.lane
        self._member = member
        self._make_context = make_context
        self._on_answer = on_answer

    def __repr__(self) -> str:
        return f"<ChunkJob {self.job_id} attempt={self.attempt}>"

    @functools.cached_property
    def context(self) -> JobContext:
        """What middleware is given, and what does all that a handler of one job can do as well."""
        return self._make_context(self._member)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        return self.context.log

    @property
    def meta(self) -> dict[str, Any]:
        return self.context.meta

    @property
    def cancelled(self) -> bool:
        member = self._member
        stopped = member.reason is not None
        if stopped:
            member.noticed = True
        return _stopped(member.call) or stopped

    @property
    def ended(self) -> bool:
        return self._member.answer is not None or self._member.over

    def progress(self, percent: float, message: str | None = None) -> None:
        self.context.progress(percent, message)

    def complete(self, result: Any = None) -> None:
        # It says so, whatever it was told.
        self._member.noticed = False
        self._give(ChunkAnswer(result))

    def fail(self, error: BaseException) -> None:
        if not isinstance(error, BaseException):
            raise InvalidInput(
                f"a job fails by an exception, got {error!r}; write job.fail(ValueError(…))"
            )
        self._give(ChunkAnswer(error=error))

    def then(self, job: NewJob, /, *more: NewJob, on: FollowOn = "completed") -> list[str]:
        return self.context.then(job, *more, on=on)

    def publish(
        self, event_type: str, body: Any, key: str | None = None, *, on: FollowOn = "completed"
    ) -> str:
        return self.context.publish(event_type, body, key, on=on)

    def _give(self, answer: ChunkAnswer) -> None:
        if self._member.give(answer):
            self._on_answer(self._member)
        else:
            self._member.refuse()


class WorkerChunk(Chunk[Any]):
    """The jobs of one call."""

    def __init__(self, call: ChunkAttempt, jobs: Sequence[ChunkJob[Any]]) -> None:
        self.task = call.job.task
        self._call = call
        self._jobs = tuple(jobs)

    def __repr__(self) -> str:
        return f"<Chunk task={self.task!r} jobs={len(self._jobs)}>"

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> ChunkJob[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ChunkJob[Any]]: ...

    def __getitem__(self, index: int | slice) -> ChunkJob[Any] | Sequence[ChunkJob[Any]]:
        return self._jobs[index]

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        return logging.LoggerAdapter(log, {"task": self.task})

    @property
    def cancelled(self) -> bool:
        return _stopped(self._call)


def _stopped(call: ChunkAttempt) -> bool:
    if call.reason is None:
        return False
    call.noticed = True
    return True
