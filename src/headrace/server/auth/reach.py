"""What a key reaches: which jobs it sees, which it may name in a request, which it may change.

Decisions 0035 and 0036 say what holds, and why.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import msgspec

from headrace.artifacts import LAYERS
from headrace.engine.bounded_reads import parts
from headrace.errors import JobConflict, JobNotFound, SealedValue, UnknownTask
from headrace.model.job import Job, JobFilter, NewJob
from headrace.model.views import LaneView
from headrace.monitor.changes.subscribers import Change
from headrace.server.auth.caller import Caller
from headrace.server.http.problems import forbidden
from headrace.suggest import similar_or_first
from headrace.task import Task
from headrace.workflows.model import Workflow
from headrace.workflows.run import TASK as RUN
from headrace.workflows.run import parts_of

if TYPE_CHECKING:
    from headrace.server.service import Service

# An id of a job, alone or as part of the path of a file.
_ID = re.compile(
    rb"(?:(%b)/+)?\b([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})\b" % "|".join(LAYERS).encode(),
    re.IGNORECASE,
)

_PLAIN_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Reach:
    """What one caller reaches in the store of a server."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self._service = service
        self._caller = caller

    # -- what it sees ------------------------------------------------------------------------------

    def shown(self, job: Job) -> Job:
        """Return a job as this caller sees it: with the key that it gave. Raises `JobNotFound` for
        one of another queue, and for a run whose steps are in other queues.
        """
        if not self._caller.bound:
            return job
        self._caller.check_job(job)
        if self._hides(job):
            raise JobNotFound(f"no job has the id {job.id}")
        return self._as_given(job)

    async def visible(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those of these jobs, whole or brief, that this caller sees."""
        if not self._caller.bound:
            return list(jobs)
        runs = [job.id for job in jobs if self._caller.queues and job.task == RUN]
        hidden = {
            job.id
            async for some in parts(self._service.app.engine, runs)
            for job in some
            if self._hides(job)
        }
        return [
            self._as_given(job)
            for job in jobs
            if job.id not in hidden and self._caller.may_touch(job.queue)
        ]

    def _as_given(self, job: Job) -> Job:
        """Return a job with the key that this caller gave. Others may have the same object."""
        if job.key is None:
            return job
        return msgspec.structs.replace(job, key=self._caller.given_key(job.key, job.queue))

    def seen(self, job: Job) -> Job:
        """Return a job as it may be searched: without hidden values, and empty if it is hidden."""
        if self._hides(job):
            return msgspec.structs.replace(
                job, args_json=b"{}", meta_json=None, error=None, error_type=None, key=None
            )
        return self._service.answers.seen(job)

    async def own_holders(self, lanes: Sequence[LaneView]) -> list[LaneView]:
        """Return lanes with those of their holders that this caller sees."""
        if not self._caller.queues:
            return list(lanes)
        seen = await self._seen([holder for lane in lanes for holder in lane.holders])
        return [
            msgspec.structs.replace(
                lane, holders=tuple(each for each in lane.holders if each in seen)
            )
            for lane in lanes
        ]

    async def own_words(self, job: Job, sentences: Sequence[str]) -> list[str]:
        """Return sentences about a job without the ids of jobs that this caller does not see."""
        if not self._caller.queues:
            return list(sentences)
        named = {found for each in sentences for found in _PLAIN_ID.findall(each)}
        hidden = named - {job.id} - await self._seen(sorted(named))
        return [
            _PLAIN_ID.sub(lambda found: "another job" if found[0] in hidden else found[0], each)
            for each in sentences
        ]

    async def _seen(self, ids: Sequence[str]) -> set[str]:
        jobs = [job async for some in parts(self._service.app.engine, ids) for job in some]
        return {job.id for job in await self.visible(jobs)}

    def sees(self, job: Job) -> bool:
        """Return whether a job in one of this caller's queues is for it."""
        return not self._hides(job)

    def data(self, change: Change) -> bytes:
        """Return the data of a change, with the key that this caller gave."""
        job = change.job
        if job is None or job.key is None or not self._caller.bound:
            return change.data
        return self._service.answers.data(self._as_given(job))

    def _hides(self, job: Job) -> bool:
        """Return whether a run tells of steps in queues that are not for this caller."""
        if not self._caller.queues or job.task != RUN:
            return False
        try:
            workflow, _ = parts_of(job)
        except JobConflict:
            return True
        return not self.uses(workflow)

    def uses(self, workflow: Workflow) -> bool:
        """Return whether all queues of a workflow are this caller's."""
        app = self._service.app
        if not self._caller.queues:
            return True
        # Nobody knows the queue of a task that is not known here.
        unknown = any(step.queue is None and step.task not in app.tasks for step in workflow.steps)
        return not unknown and all(map(self._caller.may_touch, app.workflows.queues(workflow)))

    # -- what it may name --------------------------------------------------------------------------

    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """Return the tasks of this caller's queues, by name."""
        tasks, may_touch = self._service.app.tasks, self._caller.may_touch
        return {name: tasks[name] for name in sorted(tasks) if may_touch(tasks[name].policy.queue)}

    def task(self, name: str) -> Task[..., Any]:
        """Return a task. For a key for some queues there are no tasks of others."""
        if not self._caller.queues:
            return self._service.app.find_task(name)
        own = self.tasks()
        if name not in own:
            known = similar_or_first(name, own) if own else "none"
            raise UnknownTask(
                f'Unknown task "{name}". This key is for tasks of its queues '
                f"({', '.join(sorted(self._caller.queues))}): {known}."
            )
        return own[name]

    async def check_named(self, field: str, *documents: bytes | None) -> None:
        """Refuse JSON that names a job that this caller may not see, or a file of one: a handler
        could open it.
        """
        if not self._caller.queues:
            return
        named: dict[str, bool] = {}
        for document in filter(None, documents):
            for text in {document, unquote_to_bytes(document)}:
                for layer, found in _ID.findall(text):
                    digits = found.decode().replace("-", "").lower()
                    cuts = zip((0, 8, 12, 16, 20), (8, 12, 16, 20, 32), strict=True)
                    job_id = "-".join(digits[start:end] for start, end in cuts)
                    named[job_id] = named.get(job_id, False) or bool(layer)
        if not named:
            return
        await self._service.app.open()
        own: set[str] = set()
        others: set[str] = set()
        async for some in parts(self._service.app.engine, list(named)):
            for job in some:
                mine = self._caller.may_touch(job.queue) and not self._hides(job)
                (own if mine else others).add(job.id)
        # A file may outlive its job.
        files = {job_id for job_id, is_file in named.items() if is_file}
        for job_id in sorted(others | (files - own)):
            raise forbidden(
                f"{field} names job {job_id}, which this key may not see",
                "leave it out, or use a key for its queue",
                field=field,
                value=job_id,
            )

    # -- what it may change ------------------------------------------------------------------------

    def check_own(self, job: Job) -> Job:
        """Refuse to change a job of another user than the one that this caller acts for."""
        if self._caller.user is not None and self._user_of(job) != self._caller.user:
            raise forbidden(
                f"this key acts for user {self._caller.user!r} only; {job.id} is not theirs",
                "use a key of that user, or one without a user",
            )
        return job

    async def check_retry(self, *jobs: Job) -> None:
        """Refuse to retry steps whose run is not this caller's to change: it goes on as a whole,
        with what else did not complete.
        """
        workflows, engine = self._service.app.workflows, self._service.app.engine
        for job in jobs if self._caller.queues else ():
            await workflows.check_queues(job, self._caller.queues)
        if self._caller.user is not None:
            parents = {job.parent for job in jobs if job.parent is not None}
            async for some in parts(engine, sorted(parents)):
                for run in some:
                    if run.task == RUN:
                        self.check_own(run)

    def _user_of(self, job: Job) -> str | None:
        """Return whose job it is: who is in its `meta`; if nobody is, whom its argument names."""
        user = job.meta.get("user")
        if user is None and self._service.user_argument is not None and job.task != RUN:
            opened = msgspec.structs.replace(job, opener=self._service.app.sealing)
            with contextlib.suppress(SealedValue):  # nobody's, for those who cannot know
                user = opened.args.get(self._service.user_argument)
        return None if user is None else str(user)

    # -- what it has made --------------------------------------------------------------------------

    async def made_before(self, new: NewJob) -> Job | None:
        """Return the job with the same task and key that this caller, or another with the same
        bounds, made when bound keys had no space of their own.
        """
        if new.key is None or not self._caller.bound:
            return None
        key = self._caller.given_key(new.key, new.queue)
        if key == new.key:
            return None
        await self._service.app.open()
        wanted = JobFilter(tasks=(new.task,), key=key)
        found = await self._service.app.engine.list_jobs(wanted, limit=1)
        for job in found.jobs:
            maker = await self._service.keys.any(str(job.meta.get("key_id")))
            if (
                job.queue == new.queue
                and maker is not None
                and bool(maker.queues) == bool(self._caller.queues)
                and maker.user == self._caller.user == job.meta.get("user")
            ):
                return job
        return None


async def enqueue(service: Service, caller: Caller, new: NewJob) -> Job:
    """Store a job of a caller; return it, or the one that has its key."""
    reach = Reach(service, caller)
    found = await reach.made_before(new) or await service.app.enqueue_job(new)
    return reach.shown(found)


async def enqueue_all(service: Service, caller: Caller, new: Iterable[NewJob]) -> list[Job]:
    """Store jobs of a caller together, and return for each the job that has its key."""
    reach = Reach(service, caller)
    asked = list(new)
    before = [await reach.made_before(job) for job in asked]
    rest = [job for job, found in zip(asked, before, strict=True) if found is None]
    stored = iter(await service.app.enqueue_many(rest) if rest else [])
    return [reach.shown(found or next(stored)) for found in before]
