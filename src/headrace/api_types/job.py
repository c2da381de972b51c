"""A job as it travels: the shape of `Job.to_dict()`, with the JSON inside it left as it is."""

from __future__ import annotations

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
        )


class JobList(msgspec.Struct):
    """A page of jobs, newest first."""

    jobs: list[JobBody]
    cursor: str | None = None


class BatchAnswer(msgspec.Struct):
    """The jobs of a batch, and for each whether it is new or was there already by its key."""

    jobs: list[JobBody]
    created: list[bool]
