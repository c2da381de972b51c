"""App: the only place that wires the rooms together."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeVar, overload

from headrace import job_tree
from headrace.admin.verbs import AdminVerbs
from headrace.batching import each
from headrace.bundle_verbs import BundleVerbs
from headrace.clock import Clock
from headrace.config import Settings, load
from headrace.enqueue import OnProgress
from headrace.errors import (
    InvalidArguments,
    InvalidSetting,
    JobConflict,
    MissingDriver,
    PayloadTooLarge,
)
from headrace.model.ids import parse_id
from headrace.model.job import Job, NewJob
from headrace.model.names import check_text
from headrace.model.views import Delivery
from headrace.monitor.why import why
from headrace.task import Task
from headrace.task.codec import encode_exact

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.dispatchers.cron.schedules import ScheduleOptions, Schedules
    from headrace.encryption import KeySource
    from headrace.loops.loop import Loop
    from headrace.model.artifact import File
    from headrace.model.schedules.schedule import Schedule
    from headrace.telemetry import Telemetry
    from headrace.workflows.catalog import Workflows
    from headrace.workflows.code import WorkflowBuilder

# The task that runs workflows; its module is loaded when one is run.
WORKFLOW = "headrace.workflow"
EVENTS = ("headrace.publish", "headrace.deliver", "headrace.alert")

T = TypeVar("T", bound=Task[..., Any])
R = TypeVar("R")


class App(BundleVerbs, AdminVerbs):
    """Tasks, and the engine that their jobs live in.

    Nothing is connected until the first verb, or `open()`. Use it as `async with` to close it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        encryption: KeySource | None = None,
        **given: Any,
    ) -> None:
        if settings is None:
            settings = load(url=url, **given)
        elif url is not None or given:
            raise InvalidSetting("give either settings or single values, not both")
        super().__init__()
        self._encryption = encryption
        self.reconfigure(settings, clock=clock or Clock())

    def __repr__(self) -> str:
        return f"<App {self._engine.name} tasks={len(self.tasks)}>"

    async def open(self) -> None:
        """Connect and bring the schema up to date. Every verb does this by itself."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._process != os.getpid():
            await self._move_to(loop)
        if not self._opened:
            await self._open()
        if "bundles" in vars(self):
            await self._prepare_bundles()
        publishing = self.__dict__.get("_publishing")
        if publishing is not None and publishing.types.stored_in is not self._engine:
            await self._store_event_types()

    # -- schedules -----------------------------------------------------------------------------

    @functools.cached_property
    def schedules(self) -> Schedules:
        """When tasks run by the clock. Schedules are kept in the engine."""
        try:
            from headrace.dispatchers.cron.schedules import Schedules  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise MissingDriver(
                f'schedules need {error.name}; install it: pip install "headrace[cron]"'
            ) from error
        return Schedules(self)

    def schedule(self, expression: str, **options: Unpack[ScheduleOptions]) -> Callable[[T], T]:
        """Run a task by the clock: `@app.schedule("*/5 * * * *", tz=…)` above `@app.task`."""
        return self.schedules.declaring(expression, **options)

    def add_schedule(
        self, task: Task[..., Any] | str, expression: str, **options: Unpack[ScheduleOptions]
    ) -> Schedule:
        """The same for a task that is defined elsewhere. A cron dispatcher makes the jobs."""
        return self.schedules.declare(task, expression, **options)

    # -- workflows -----------------------------------------------------------------------------

    @functools.cached_property
    def workflows(self) -> Workflows:
        """Tasks that hang together, from files and from code."""
        from headrace.workflows.catalog import Workflows  # noqa: PLC0415 - many have none

        return Workflows(self)

    def workflow(self, workflow_id: str, **fields: Any) -> WorkflowBuilder:
        """Begin a workflow in code: `version=`, `params=`, `queue=`, `lane=`, `priority=`."""
        return self.workflows.define(workflow_id, **fields)

    @functools.cached_property
    def _workflow_task(self) -> Task[..., Any]:
        from headrace.workflows.run import workflow_task  # noqa: PLC0415 - seldom used

        return workflow_task(self)

    def built_in(self, name: str) -> Task[..., Any] | None:
        """A task that every worker has, whatever its App."""
        if name in EVENTS:
            return self._publishing.task(name)
        return self._workflow_task if name == WORKFLOW else None

    def task_names(self) -> tuple[str, ...]:
        """The names of all tasks that a worker of this App knows. Without keys it cannot run those
        that are encrypted.
        """
        if self.sealing is None:
            known = [name for name, task in self.tasks.items() if not task.encrypted]
            return (*known, WORKFLOW, *EVENTS)
        return (*self.tasks, WORKFLOW, *EVENTS)

    @property
    def payload_limit(self) -> int:
        """How many bytes the arguments of a job may have."""
        return self.settings.payload_limit

    # -- verbs ---------------------------------------------------------------------------------

    async def enqueue_job(self, job: NewJob[R], *, connection: Any = None) -> Job[R]:
        """Store one job that a task has made."""
        await self.open()
        if self._sealing is not None:
            return await self._enqueue_openable(job, connection)
        if connection is not None:
            return await self._enqueuer.within(connection, job)
        return await self._enqueuer.one(job)

    async def _enqueue_openable(self, job: NewJob[R], connection: Any) -> Job[R]:
        enqueuer = self._enqueuer
        within = connection is not None
        stored = await (enqueuer.within(connection, job) if within else enqueuer.one(job))
        return self._openable(stored)

    def job(self, name: str, args: Mapping[str, Any] | None = None, **options: Any) -> NewJob:
        """Make a job without storing it, for `enqueue_many`. It is checked against its task; the
        options are those of `task.options(…)`.
        """
        bound = self.find_task(name).options(**options)
        try:
            encoded = encode_exact(args or {})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArguments(f'task "{name}": {error}; pass plain data') from None
        return bound.job_from_json(encoded)

    @overload
    async def enqueue(self, name: NewJob[R], /, *, conn: Any = None) -> Job[R]: ...
    @overload
    async def enqueue(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Any,
    ) -> Job: ...

    async def enqueue(
        self,
        name: str | NewJob,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Any,
    ) -> Job:
        """Enqueue by task name, with the same checks and options as `task.options(…).enqueue(…)`;
        or a job that was made before, beside which only `conn` may be given.

        `files` go with it: each is stored as an artifact, and the argument of its name is its path.
        """
        job, _ = await self.enqueue_or_find(name, args, files=files, **options)
        return job

    async def enqueue_or_find(
        self,
        name: str | NewJob,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Any,
    ) -> tuple[Job, bool]:
        """The same, and whether the job is new: False if one with its key was there already."""
        connection = options.get("conn")
        if isinstance(name, str) and files is not None:
            task = self.find_task(name)
            arguments = task.signature.beside((), dict(args or {}), files)
            make = functools.partial(task.options(**options).job_with_files, arguments)
            return await self.enqueue_with_files(files, make, connection=connection)
        if isinstance(name, str):
            new = self.job(name, args, **options)
        else:
            new = name
            wrong = {"args": args, "files": files}
            if given := [
                *(each for each, value in wrong.items() if value is not None),
                *(options.keys() - {"conn"}),
            ]:
                raise InvalidSetting(
                    f"a job made by `job` has its arguments and options, got also "
                    f"{', '.join(given)}; make it by task.options(…).job(…)"
                )
        job = await self.enqueue_job(new, connection=connection)
        return job, job.id == new.id

    async def enqueue_many(
        self,
        jobs: Iterable[NewJob[R]] | AsyncIterable[NewJob[R]],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[Job[R]]:
        """Store any number of jobs in order, streamed in bounded batches."""
        await self.open()
        stored = await self._enqueuer.many(jobs, on_progress=on_progress)
        return stored if self._sealing is None else list(map(self._openable, stored))

    async def enqueue_or_find_many(
        self,
        jobs: Iterable[NewJob[R]] | AsyncIterable[NewJob[R]],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[tuple[Job[R], bool]]:
        """The same, and for each whether it is new: False if one with its key was there already."""
        ids: list[str] = []

        async def noted() -> AsyncIterator[NewJob[R]]:
            async for job in each(jobs):
                ids.append(job.id)
                yield job

        stored = await self.enqueue_many(noted(), on_progress=on_progress)
        return [(job, job.id == new_id) for job, new_id in zip(stored, ids, strict=True)]

    async def cancel(self, job_id: str, reason: str = "cancelled") -> Job:
        """Cancel a job: at once, or as soon as its running handler has stopped. So are the
        children that it made, and theirs.
        """
        before = await self.get(job_id)
        if not await job_tree.cancel(self._engine, [before.id], reason):
            now = await self.get(job_id)
            raise JobConflict(f"job {job_id} is {now.status} already and cannot be cancelled")
        return await self.get(job_id)

    async def signal(self, job_id: str, event: str, value: Any = None) -> Delivery:
        """Deliver an event to a job that waits for it (`ctx.wait`), or will. The first of a name
        counts: the answer is "delivered", or "already" if there was one.
        """
        check_text("event", event)
        await self.open()
        try:
            body = encode_exact(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArguments(f"event {event!r}: {error}; pass plain data") from None
        if len(body) > self.payload_limit:
            raise PayloadTooLarge(
                f"event {event!r}: the value takes {len(body):,} bytes, the limit is "
                f"{self.payload_limit:,}; keep it elsewhere and pass a reference"
            )
        body = await self._sealed_event(parse_id(job_id), event, body)
        delivery = await job_tree.deliver(self._engine, parse_id(job_id), event, body)
        if delivery in ("delivered", "already"):
            return delivery
        now = await self.get(job_id)
        raise JobConflict(f"job {job_id} is {now.status} already: nobody waits for {event!r}")

    async def retry(self, job_id: str, *, from_stage: str | None = None) -> Job:
        """Run a finished job again, or a scheduled one now. Finished stages are not repeated,
        except from `from_stage` on. A failed step of a workflow is retried by its run, which goes
        on with all that did not complete.
        """
        before = await self.get(job_id)
        if from_stage is not None and before.task == WORKFLOW:
            await self.workflows.retry(before, from_stage)
        elif from_stage is not None:
            await self.workflows.rerun_from(before, from_stage)
        else:
            answer = await self.workflows.retry_jobs([before])
            if not answer.moved:
                now = await self.get(job_id)
                reason = f"job {job_id} is {now.status}: it needs no retry"
                raise JobConflict(answer.refused.get(before.id, reason))
        return await self.get(job_id)

    async def rerun(self, jobs: Sequence[Job], *, queues: Collection[str] = ()) -> Sequence[str]:
        """Run finished jobs again that were not run since they were read, and scheduled ones now.
        Runs of workflows, and those of failed steps, go on with what did not complete, each once;
        with `queues` only those that use no others. Answers the ids of those that were moved.
        """
        return (await self.workflows.retry_jobs(jobs, queues)).moved

    async def why(self, job_id: str) -> Sequence[str]:
        """Why is it not running? In sentences."""
        return await why(self._engine, await self.get(job_id), self.clock.now())

    def upkeep(self, *, telemetry: Telemetry, worker: Callable[[], str]) -> Sequence[Loop]:
        """The loops that every orchestrator runs: they keep the store moving, and tell of it."""
        # Programs that only enqueue need none of this.
        from headrace.monitor.counters.worker_metrics import Publish  # noqa: PLC0415
        from headrace.monitor.series.fold import FoldSeries  # noqa: PLC0415
        from headrace.upkeep import loops  # noqa: PLC0415

        publish = Publish(engine=self._engine, telemetry=telemetry, worker=worker, clock=self.clock)
        fold = FoldSeries(engine=self._engine, clock=self.clock)
        return [*loops(self._engine, self.settings, self.clock, self.artifact_store), fold, publish]
