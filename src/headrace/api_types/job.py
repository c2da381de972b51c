"""A job as it travels: the shape of `Job.to_dict()`, with the JSON inside it left as it is."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.model.durable.awaited import Awaited
from headrace.model.durable.entries import StageView
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry
from headrace.model.status import STATES, Status

NULL = msgspec.Raw(b"null")
EMPTY = msgspec.Raw(b"{}")


class JobBody(msgspec.Struct, kw_only=True, gc=False):
    """One job. The defaults are for servers that do not send these fields yet."""

    job_id: str
    task: str
    queue: str
    status: Status
    args: msgspec.Raw = msgspec.field(default_factory=lambda: EMPTY)
    priority: int = 0
    lane: str | None = None
    width: int | None = None
    key: str | None = None
    source: str = "api"
    attempt: int = 0
    max_attempts: int = 4
    timeout: float | None = None
    on_crash: str = "retry"
    stage: str | None = None
    progress: float = 0.0
    message: str | None = None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    worker: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    result: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    cancel_requested: bool = False
    attempts: list[AttemptEntry] = []
    meta: msgspec.Raw = msgspec.field(default_factory=lambda: EMPTY)
    parent: str | None = None
    group: str | None = None
    awaits: tuple[Awaited, ...] = ()
    # Only where a single job is shown: finding them takes another query.
    stages: list[StageView] | msgspec.UnsetType = msgspec.UNSET

    def to_job(self) -> Job:
        """Return the job as an App returns it.

        On the wire "waits for its lane" and "may run now" are one status, so a pending job comes
        back in the last of its states.
        """
        return Job(
            id=self.job_id,
            task=self.task,
            queue=self.queue,
            state=STATES[self.status][-1],
            args_json=bytes(self.args),
            priority=self.priority,
            lane=self.lane,
            width=self.width or 1,
            key=self.key,
            source=self.source,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            on_crash=self.on_crash,
            stage=self.stage,
            progress=self.progress,
            message=self.message,
            created_at=self.created_at,
            run_at=self.run_at,
            started_at=self.started_at,
            completed_at=self.completed_at,
            worker=self.worker,
            error_type=self.error_type,
            error=self.error_message,
            result_json=bytes(self.result) if self.status is Status.COMPLETED else None,
            cancel_requested=self.cancel_requested,
            meta_json=bytes(self.meta),
            log=b"\n".join(msgspec.json.encode(entry) for entry in self.attempts),
            parent=self.parent,
            group=self.group,
            awaits=self.awaits,
        )


class JobList(msgspec.Struct):
    """A page of jobs, newest first."""

    jobs: list[JobBody]
    cursor: str | None = None


class BatchAnswer(msgspec.Struct):
    """The jobs of a batch, and for each whether it is new or was there already by its key."""

    jobs: list[JobBody]
    created: list[bool]
