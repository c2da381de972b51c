"""A job as it travels: the shape of `Job.to_dict()`, with the JSON inside it left as it is."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.model.durable.entries import StageView
from headrace.model.job import SHOWN_AS, Job, JobFields
from headrace.model.outcome import AttemptEntry
from headrace.model.status import STATES, Status

NULL = msgspec.Raw(b"null")
EMPTY = msgspec.Raw(b"{}")


class JobBody(JobFields, kw_only=True, gc=False, rename=SHOWN_AS):
    """One job. The defaults are for servers that do not send these fields yet."""

    # Also those that are only renamed: fields that are inherited keep their names.
    id: str
    state: Status
    args_json: msgspec.Raw = msgspec.field(default_factory=lambda: EMPTY)
    width: int | None = None
    source: str = "api"
    error: str | None = None
    result_json: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    log: list[AttemptEntry] = msgspec.field(default_factory=list)
    meta_json: msgspec.Raw = msgspec.field(default_factory=lambda: EMPTY)
    # Only where a single job is shown: finding them takes another query.
    stages: list[StageView] | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, job: Job) -> JobBody:
        """Return the body of a job, with everything that is in it."""
        return cls(
            id=job.id,
            task=job.task,
            queue=job.queue,
            state=job.status,
            args_json=msgspec.Raw(job.args_json),
            priority=job.priority,
            lane=job.lane,
            width=None if job.lane is None else job.width,
            key=job.key,
            source=job.source,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            timeout=job.timeout,
            on_crash=job.on_crash,
            stage=job.stage,
            progress=job.progress,
            message=job.message,
            created_at=job.created_at,
            run_at=job.run_at,
            admitted_at=job.admitted_at,
            started_at=job.started_at,
            completed_at=job.completed_at,
            worker=job.worker,
            error_type=job.error_type,
            error=job.error,
            result_json=NULL if job.result_json is None else msgspec.Raw(job.result_json),
            cancel_requested=job.cancel_requested,
            log=job.shown_attempts if job.log else [],
            meta_json=msgspec.Raw(job.meta_json) if job.meta_json else EMPTY,
            parent=job.parent,
            group=job.group,
            awaits=job.awaits,
            expires_at=job.expires_at,
            parked=job.parked,
        )

    def to_job(self) -> Job:
        """Return the job as an App returns it.

        On the wire "waits for its lane" and "may run now" are one status, so a pending job comes
        back in the last of its states.
        """
        return Job(
            id=self.id,
            task=self.task,
            queue=self.queue,
            state=STATES[self.state][-1],
            args_json=bytes(self.args_json),
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
            admitted_at=self.admitted_at,
            started_at=self.started_at,
            completed_at=self.completed_at,
            worker=self.worker,
            error_type=self.error_type,
            error=self.error,
            result_json=bytes(self.result_json) if self.state is Status.COMPLETED else None,
            cancel_requested=self.cancel_requested,
            meta_json=bytes(self.meta_json),
            log=b"\n".join(msgspec.json.encode(entry) for entry in self.log),
            parent=self.parent,
            group=self.group,
            awaits=self.awaits,
            expires_at=self.expires_at,
            parked=self.parked,
        )


# What may be large.
_LARGE = ("args_json", "result_json", "log", "meta_json", "stages")
_ROW = [field for field in msgspec.structs.fields(JobBody) if field.name not in _LARGE]
JobRow = msgspec.defstruct(
    "JobRow",
    [
        (each.name, each.type) if each.required else (each.name, each.type, each.default)
        for each in _ROW
    ],
    namespace={"__doc__": "One job without arguments, result, meta and attempts."},
    kw_only=True,
    rename=SHOWN_AS,
)


def row_of(body: JobBody) -> msgspec.Struct:
    """Return a job without what may be large."""
    return JobRow(**{field.name: getattr(body, field.name) for field in _ROW})


class JobList(msgspec.Struct):
    """A page of jobs, newest first. A search tells back to which time it has looked."""

    jobs: list[JobBody]
    cursor: str | None = None
    searched_to: datetime | None = None


class BatchAnswer(msgspec.Struct):
    """The jobs of a batch, and for each whether it is new or was there already by its key."""

    jobs: list[JobBody]
    created: list[bool]
