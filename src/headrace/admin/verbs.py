"""The verbs of an App beside those for single jobs. `Client` has the same over HTTP."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.admin.job_verbs import JobVerbs
from headrace.admin.overview import OverviewVerbs
from headrace.errors import ArtifactNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job, NewJob, Source

# Types of answers, drivers and extras are imported by the verbs that need them: a program that only
# enqueues carries none of them.
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from headrace.admin.artifacts import AppArtifacts
    from headrace.api_types.requests import AppPutOptions, RunOptions, ScheduleSettings
    from headrace.api_types.responses import (
        RunBegun,
        ScheduleTimes,
        ScheduleView,
    )
    from headrace.api_types.series import SeriesOptions, SeriesView
    from headrace.artifacts.index import HandedIn
    from headrace.dispatchers.cron.schedules import Schedules
    from headrace.model.artifact import Artifact, File, KeptFile, KeptPage
    from headrace.model.durable.writes import StoredEntry
    from headrace.task.app_like import AppLike
    from headrace.workflows.catalog import Workflows
    from headrace.workflows.model import Workflow
    from headrace.workflows.steps import RunView


class AdminVerbs(JobVerbs, OverviewVerbs):
    """What is to be seen and done around jobs."""

    @property
    @abstractmethod
    def schedules(self) -> Schedules:
        """The schedules in the engine."""

    @property
    @abstractmethod
    def workflows(self) -> Workflows:
        """The workflows that the App knows."""

    # -- jobs ----------------------------------------------------------------------------------

    async def series(self, **wanted: Unpack[SeriesOptions]) -> SeriesView:
        """Return what was done by minute, hour or day, and how deep queues were."""
        from headrace.monitor.series.read import SeriesReader  # noqa: PLC0415

        return await SeriesReader(cast("AppLike", self)).read(**wanted)

    async def entries(self, job_id: str) -> Sequence[StoredEntry]:
        """Return what is stored with a job: stages and the like, the oldest first."""
        await self.open()
        return await self._engine.entries(parse_id(job_id))

    # -- files of jobs -------------------------------------------------------------------------

    @functools.cached_property
    def artifacts(self) -> AppArtifacts:
        """The files of jobs, by their paths, and files for jobs that are not enqueued yet."""
        from headrace.admin.artifacts import AppArtifacts  # noqa: PLC0415

        return AppArtifacts(cast("AppLike", self))  # nothing but an App has these verbs

    async def enqueue_with_files(
        self,
        files: Mapping[str, File],
        make: Callable[[list[HandedIn]], NewJob],
        *,
        connection: Any = None,
    ) -> tuple[Job, bool]:
        """Store files and the job that `make` makes of them, or neither; and whether it is new."""
        from headrace.artifacts import job_uploads  # noqa: PLC0415 - most jobs come without files

        uploads = job_uploads.uploads_of(files)
        await self.open()
        insert = functools.partial(self.enqueue_job, connection=connection)
        return await job_uploads.enqueue_with_files(
            self._engine, self.artifact_store, uploads, make, insert, sealing=self.sealing
        )

    async def list_artifacts(self, job_id: str) -> Sequence[Artifact]:
        """Return the files that a job has stored, and those that it was enqueued with."""
        from headrace.artifacts.index import files_of  # noqa: PLC0415

        return list((await files_of(self._engine, await self.get(job_id))).values())

    async def keep_file(self, path: str, *, owner: str, reason: str = "") -> KeptFile:
        """Keep a file when its job is pruned, until `owner` releases it."""
        return await self.artifacts.keep(path, owner=owner, reason=reason)

    async def release_file(self, path: str, *, owner: str) -> bool:
        """End what `keep_file` began; return False if `owner` did not keep it."""
        return await self.artifacts.release(path, owner=owner)

    async def kept_files(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage:
        """Return a page of kept files, of all owners or one, by job."""
        return await self.artifacts.kept(owner, cursor=cursor, limit=limit)

    async def stream(
        self, job_id: str, name: str, *, layer: str = "artifacts"
    ) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file. The checksum is compared at the end."""
        from headrace.artifacts.index import file_of  # noqa: PLC0415

        file = await file_of(self._engine, await self.get(job_id), layer, name)
        if file is None:
            raise ArtifactNotFound(f"job {job_id} has no file {layer[:20]}/{name[:200]}")
        async for chunk in self.artifact_store.stream(file.path, sha256=file.sha256):
            yield chunk

    async def download(self, job_id: str, name: str, *, layer: str = "artifacts") -> bytes:
        """Return the content of a file at once."""
        return b"".join([chunk async for chunk in self.stream(job_id, name, layer=layer)])

    async def download_to(
        self, job_id: str, name: str, target: Path, *, layer: str = "artifacts"
    ) -> None:
        """Save the content of a file of any size. It is there whole or not at all."""
        from headrace.artifacts.content import save  # noqa: PLC0415

        await save(self.stream(job_id, name, layer=layer), target)

    # -- schedules -----------------------------------------------------------------------------

    async def list_schedules(self) -> Sequence[ScheduleView]:
        """Return every schedule in words, with its next times and its last jobs."""
        schedules = self.schedules  # says what to install if the extra is missing
        from headrace.dispatchers.cron.views import schedule_views  # noqa: PLC0415

        await self.open()
        return await schedule_views(schedules, self.clock.utcnow())

    async def get_schedule(self, name: str) -> ScheduleView:
        """Return one schedule. Raises `UnknownSchedule`."""
        schedules = self.schedules
        from headrace.dispatchers.cron.views import schedule_view  # noqa: PLC0415

        return await schedule_view(schedules, name, self.clock.utcnow())

    async def put_schedule(
        self, name: str, expression: str, task: str, **options: Unpack[AppPutOptions]
    ) -> ScheduleView:
        """Add a schedule, or change the one of this name. It fires from its next time on."""
        schedules = self.schedules
        from headrace.model.schedules.schedule import Schedule  # noqa: PLC0415

        params = dict(options.pop("params", None) or {})
        source, replace = options.pop("source", "app"), options.pop("replace", True)
        settings = cast("ScheduleSettings", options)
        schedule = Schedule(name=name, expression=expression, task=task, params=params, **settings)
        await schedules.add(schedule, origin=source, replace=replace)
        return await self.get_schedule(name)

    async def remove_schedule(self, name: str) -> None:
        """Remove a schedule. Jobs that it has made stay."""
        await self.schedules.remove(name)

    async def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView:
        """Let a schedule fire, or not. Times while it was disabled are skipped."""
        await self.schedules.enable(name, enabled)
        return await self.get_schedule(name)

    async def trigger_schedule(
        self, name: str, *, force: bool = False, source: Source = "code"
    ) -> Job:
        """Make a job of a schedule now; with `force` also while one of it is unfinished."""
        return self._openable(await self.schedules.trigger(name, source=source, force=force))

    async def next_times(self, name: str, count: int = 5) -> ScheduleTimes:
        """Return when a schedule fires next."""
        schedule = (await self.schedules.get(name)).schedule
        from headrace.dispatchers.cron.views import schedule_times  # noqa: PLC0415

        return schedule_times(schedule, self.clock.utcnow(), count)

    # -- workflows and their runs --------------------------------------------------------------

    async def list_workflows(self) -> Sequence[Workflow]:
        """Return the newest version of each workflow."""
        return self.workflows.all()

    async def get_workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow:
        """Return one workflow with its steps. Raises `UnknownWorkflow`."""
        return self.workflows.find(workflow_id, version)

    async def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunBegun:
        """Begin a run. With a key, asking again makes no second one."""
        from headrace.api_types.responses import RunBegun  # noqa: PLC0415

        job = await self.workflows.run(workflow_id, dict(params or {}), **options)
        return RunBegun(job.id, workflow_id, job.meta["workflow_version"], job.status.value)

    async def follow_run(self, job_id: str) -> RunView:
        """Return a run with the state of each of its steps."""
        return await self.workflows.look(await self.get(job_id))

    async def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]:
        """Begin a finished run again: from a step, or what did not complete. Return the steps."""
        return await self.workflows.retry(await self.get(job_id), from_step)
