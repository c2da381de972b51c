# Made by `python -m tests.support.sync_stubs`; do not edit.

import builtins
from collections.abc import (
    AsyncIterable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, Unpack

from headrace.api_types.requests import JobRequest, Missed, Scope
from headrace.api_types.responses import (
    AuditPage,
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
    TaskView,
)
from headrace.client.client import Client as AsyncClient
from headrace.client.client import OnProgress
from headrace.client.files import File
from headrace.client.job_codec import JobOptions
from headrace.loops.loop_thread import LoopThread
from headrace.model.artifact import Artifact, KeptFile, KeptPage
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.views import Delivery, JobPage, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

Value = TypeVar("Value")
WOULD_BLOCK: str

class SyncClient:
    client: AsyncClient
    _thread: LoopThread

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
    ) -> None: ...
    def __repr__(self) -> str: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value: ...
    def job(
        self, name: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> JobRequest: ...
    def enqueue(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> Job: ...
    def enqueue_or_find(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> tuple[Job, bool]: ...
    def enqueue_many(
        self,
        jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
        *,
        on_progress: OnProgress | None = None,
    ) -> builtins.list[Job]: ...
    def enqueue_or_find_many(
        self,
        jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
        *,
        on_progress: OnProgress | None = None,
    ) -> builtins.list[tuple[Job, bool]]: ...
    def get(self, job_id: str) -> Job: ...
    def result(self, job_id: str, timeout: float | None = None) -> Any: ...
    def cancel(self, job_id: str, reason: str = "cancelled") -> Job: ...
    def retry(self, job_id: str, *, from_stage: str | None = None) -> Job: ...
    def signal(self, job_id: str, event: str, value: Any = None) -> Delivery: ...
    def why(self, job_id: str) -> Sequence[str]: ...
    def entries(self, job_id: str) -> Sequence[StoredEntry]: ...
    def events(
        self,
        job_id: str | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
        on_gap: Callable[[], None] | None = None,
    ) -> Iterator[Job]: ...
    def list(
        self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage: ...
    def bulk(
        self,
        action: Literal["cancel", "retry"],
        filter: JobFilter,
        *,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkAnswer: ...
    def artifacts(self, job_id: str) -> Sequence[Artifact]: ...
    def keep_file(self, path: str, *, owner: str, reason: str = "") -> KeptFile: ...
    def release_file(self, path: str, *, owner: str) -> bool: ...
    def kept_files(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage: ...
    def download(self, job_id: str, name: str, *, layer: str = "artifacts") -> bytes: ...
    def download_to(
        self, job_id: str, name: str, target: Path, *, layer: str = "artifacts"
    ) -> None: ...
    def stream(self, job_id: str, name: str, *, layer: str = "artifacts") -> Iterator[bytes]: ...
    def running(self) -> Running: ...
    def queues(self) -> Sequence[QueueView]: ...
    def pause(self, queue: str) -> None: ...
    def resume(self, queue: str) -> None: ...
    def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]: ...
    def workers(self) -> Sequence[Worker]: ...
    def metrics(self) -> str: ...
    def tasks(self) -> Sequence[TaskView]: ...
    def workflows(self) -> Sequence[Workflow]: ...
    def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow: ...
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
    def schedules(self) -> Sequence[ScheduleView]: ...
    def schedule(self, name: str) -> ScheduleView: ...
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
    ) -> ScheduleView: ...
    def remove_schedule(self, name: str) -> None: ...
    def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView: ...
    def trigger_schedule(self, name: str, *, force: bool = False) -> Job: ...
    def next_times(self, name: str, count: int = 5) -> ScheduleTimes: ...
    def dispatchers(self) -> Sequence[DispatcherView]: ...
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
    def audit(self, *, cursor: str | None = None, limit: int = 50) -> AuditPage: ...

Client = SyncClient
