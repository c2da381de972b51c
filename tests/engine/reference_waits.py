"""The part of the reference model about waits, times to start by, families and records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import RecordConflict
from headrace.model.durable.awaited import EVENT, Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.insert_policy import EXPIRED
from headrace.model.status import State
from headrace.model.views import Delivery, RecordChange
from tests.engine.reference_parts import ModelJob, Workforce

PRUNED_ARTIFACTS = "pruned-artifacts"


class Waits(Workforce):
    """Jobs that wait for events and children, and what is kept beside jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[tuple[str, str], int] = {}

    def suspended(self) -> list[str]:
        """Who waits for something, in the order of ids."""
        return sorted(job_id for job_id, job in self.jobs.items() if job.awaits)

    def late(self) -> dict[str, ModelJob]:
        """Jobs that should have started by now and have not."""
        return {
            job_id: job
            for job_id, job in self.jobs.items()
            if job.unstarted and job.expires_at is not None and job.expires_at <= self.now
        }

    def expire(self, ids: Iterable[str]) -> None:
        """Cancel some that are late: those that the engine chose."""
        self.step += 1
        late = self.late()
        ended = [late[job_id] for job_id in ids]
        for job in ended:
            self.finish(job, State.CANCELLED, (None, EXPIRED))
        self.arrange(ended)

    def next_expiry(self) -> float | None:
        """In how many seconds the next job expires, unless it starts."""
        times = [
            job.expires_at
            for job in self.jobs.values()
            if job.unstarted and job.expires_at is not None
        ]
        return max(min(times) - self.now, 0.0) if times else None

    def children(self, parent: str, group: str | None = None) -> list[ModelJob]:
        """The jobs that a job has made."""
        made = (job for job in self.jobs.values() if job.new.parent == parent)
        return [job for job in made if group is None or job.new.group == group]

    def wake(self, ids: Sequence[str]) -> list[str]:
        self.step += 1
        woken = [job for each in ids if (job := self.jobs.get(each)) and self.wait_is_over(job)]
        for job in woken:
            job.overdue_since = job.run_at if job.run_at < self.now else None
            job.run_at = self.now
            self.make_pending(job)
        self.arrange(woken)
        return [job.new.id for job in woken]

    def wait_is_over(self, job: ModelJob) -> bool:
        """One of the things has come about that it awaits, if any."""
        return any(self._has_come_about(job, awaited) for awaited in job.awaits)

    def _has_come_about(self, job: ModelJob, awaited: Awaited) -> bool:
        match awaited:
            case AwaitedEvent(name=name):
                return (EVENT, name) in job.entries
            case AwaitedChildren(group=group, left=left):
                states = [child.state for child in self.children(job.new.id, group)]
                return sum(not state.status.final for state in states) <= left

    def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        job = self.jobs.get(job_id)
        if job is None:
            return "unknown"
        if (EVENT, event) in job.entries:
            return "already"
        if job.state.status.final:
            return "finished"
        job.entries[EVENT, event] = (body, job.token)
        return "delivered"

    def put_record(self, change: RecordChange) -> None:
        """Write a record, if its version holds."""
        found = self.records.get((change.kind, change.key), 0)
        if change.version is not None and change.version != found:
            raise RecordConflict("it has another version")
        self.records[change.kind, change.key] = found + 1

    def leave_word(self, job: ModelJob) -> None:
        """Somebody has to remove the files of a job that is pruned."""
        if any(kind == "artifact" for kind, _ in job.entries):
            self.put_record(RecordChange(PRUNED_ARTIFACTS, job.new.id, b""))
