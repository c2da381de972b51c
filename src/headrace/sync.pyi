# Made by `python -m tests.support.sync_stubs`; do not edit.

import builtins
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, Concatenate, Literal, Self, TypeVar, Unpack, overload

from headrace import app as app_module
from headrace.admin.sync_artifacts import SyncArtifacts
from headrace.api_types.requests import Missed, Scope
from headrace.api_types.responses import (
    BulkAnswer,
    DeadLetterPage,
    DeadLetterView,
    DispatcherView,
    KeyView,
    NewKey,
    Replayed,
    RunBegun,
    Running,
    ScheduleTimes,
    ScheduleView,
)
from headrace.app import T
from headrace.artifacts.index import HandedIn
from headrace.dispatchers.cron.schedules import ScheduleOptions
from headrace.engine.base import Engine
from headrace.enqueue import OnProgress
from headrace.loops.loop_thread import LoopThread
from headrace.model.artifact import Artifact, File, KeptFile, KeptPage
from headrace.model.context import Context
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter, NewJob, OnCrash, Source
from headrace.model.lane import Lane
from headrace.model.policy import Isolation
from headrace.model.retry import RetryPolicy
from headrace.model.schedule import Schedule
from headrace.model.views import Delivery, JobPage, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.task import Task
from headrace.task.registry import P, R, TaskDecorator
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

Value = TypeVar("Value")
WOULD_BLOCK: str

class App:
    app: app_module.App
    _thread: LoopThread

    def __init__(self, url: str | None = None, **given: Any) -> None: ...
    def enqueue(
        self, job: NewJob | str, args: dict[str, Any] | None = None, **options: Any
    ) -> Job: ...
    @property
    def artifacts(self) -> SyncArtifacts: ...
    @property
    def engine(self) -> Engine: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value: ...
    def open(self) -> None: ...
    def schedule(self, expression: str, **options: Unpack[ScheduleOptions]) -> Callable[[T], T]: ...
    def add_schedule(
        self, task: Task[..., Any] | str, expression: str, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    def enqueue_job(self, job: NewJob, *, connection: Any = None) -> Job: ...
    def enqueue_or_find(
        self,
        name: str | NewJob,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Any,
    ) -> tuple[Job, bool]: ...
    def enqueue_many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        on_progress: OnProgress | None = None,
    ) -> builtins.list[Job]: ...
    def enqueue_or_find_many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        on_progress: OnProgress | None = None,
    ) -> builtins.list[tuple[Job, bool]]: ...
    def get(self, job_id: str) -> Job: ...
    def list(
        self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage: ...
    def result(self, job_id: str, timeout: float | None = None) -> Any: ...
    def cancel(self, job_id: str, reason: str = "cancelled") -> Job: ...
    def signal(self, job_id: str, event: str, value: Any = None) -> Delivery: ...
    def retry(self, job_id: str, *, from_stage: str | None = None) -> Job: ...
    def rerun(self, jobs: Sequence[Job]) -> Sequence[str]: ...
    def why(self, job_id: str) -> Sequence[str]: ...
    def running(self) -> Running: ...
    def queues(self) -> Sequence[QueueView]: ...
    def pause(self, queue: str) -> None: ...
    def resume(self, queue: str) -> None: ...
    def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]: ...
    def workers(self) -> Sequence[Worker]: ...
    def dispatchers(self) -> Sequence[DispatcherView]: ...
    def entries(self, job_id: str) -> Sequence[StoredEntry]: ...
    def bulk(
        self,
        action: Literal["cancel", "retry"],
        filter: JobFilter,
        *,
        dry_run: bool = False,
        reason: str | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> BulkAnswer: ...
    def enqueue_with_files(
        self,
        files: Mapping[str, File],
        make: Callable[[builtins.list[HandedIn]], NewJob],
        *,
        connection: Any = None,
    ) -> tuple[Job, bool]: ...
    def list_artifacts(self, job_id: str) -> Sequence[Artifact]: ...
    def keep_file(self, path: str, *, owner: str, reason: str = "") -> KeptFile: ...
    def release_file(self, path: str, *, owner: str) -> bool: ...
    def kept_files(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage: ...
    def stream(self, job_id: str, name: str, *, layer: str = "artifacts") -> Iterator[bytes]: ...
    def download(self, job_id: str, name: str, *, layer: str = "artifacts") -> bytes: ...
    def download_to(
        self, job_id: str, name: str, target: Path, *, layer: str = "artifacts"
    ) -> None: ...
    def list_schedules(self) -> Sequence[ScheduleView]: ...
    def get_schedule(self, name: str) -> ScheduleView: ...
    def put_schedule(
        self,
        name: str,
        expression: str,
        task: str,
        *,
        tz: str = "UTC",
        params: Mapping[str, Any] | None = None,
        allow_overlap: bool = True,
        enabled: bool = True,
        missed: Missed = "latest",
        replace: bool = True,
        source: str = "app",
    ) -> ScheduleView: ...
    def remove_schedule(self, name: str) -> None: ...
    def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView: ...
    def trigger_schedule(
        self, name: str, *, force: bool = False, source: Source = "code"
    ) -> Job: ...
    def next_times(self, name: str, count: int = 5) -> ScheduleTimes: ...
    def list_workflows(self) -> Sequence[Workflow]: ...
    def get_workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow: ...
    def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: int | str | None = None,
        key: str | None = None,
    ) -> RunBegun: ...
    def follow_run(self, job_id: str) -> RunView: ...
    def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]: ...
    def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage: ...
    def dead_letter(self, letter_id: str) -> DeadLetterView: ...
    def replay_dead_letter(self, letter_id: str) -> Replayed: ...
    def remove_dead_letter(self, letter_id: str) -> None: ...
    def keys(self) -> Sequence[KeyView]: ...
    def create_key(
        self,
        name: str,
        scope: Scope = "read",
        *,
        user: str | None = None,
        queues: Sequence[str] = (),
        rate: float | None = None,
    ) -> NewKey: ...
    def revoke_key(self, key_id: str) -> KeyView: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        name: str | None = None,
        /,
        *,
        queue: str = "default",
        lane: str | Lane | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = 600.0,
        priority: int = 0,
        on_crash: OnCrash = "retry",
        never_retry: Sequence[type[BaseException] | str] = (),
        isolate: Isolation = "none",
        memory_limit: int | None = None,
    ) -> TaskDecorator: ...

def wrap(app: app_module.App) -> App: ...
