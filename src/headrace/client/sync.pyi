# Made by `python -m tests.support.sync_stubs`; do not edit.

import builtins
from collections.abc import (
    AsyncIterable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from headrace.api_types.bulk import BulkAction, BulkAnswer, BulkView
from headrace.api_types.monitoring import ErrorGroups, Summary
from headrace.api_types.publishing import DestinationView, EventTypeView, NewDestination
from headrace.api_types.requests import JobRequest, KeyLimits, PutOptions, RunOptions, Scope
from headrace.api_types.responses import (
    AuditPage,
    DeadLetterPage,
    DeadLetterView,
    DispatcherView,
    KeyView,
    NewKey,
    QueuePaused,
    Replayed,
    RunBegun,
    Running,
    ScheduleTimes,
    ScheduleView,
    TaskView,
)
from headrace.api_types.series import SeriesOptions, SeriesView
from headrace.client.base import ClientOptions
from headrace.client.client import Client as AsyncClient
from headrace.client.client import OnProgress
from headrace.client.files import File
from headrace.client.job_codec import JobOptions
from headrace.model.artifact import Artifact, KeptFile, KeptPage
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.views import Delivery, JobCount, JobPage, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.sync import _Verbs
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

Value = TypeVar("Value")
WOULD_BLOCK: str

class SyncClient(_Verbs):
    client: AsyncClient

    def __init__(self, url: str | None = None, **options: Unpack[ClientOptions]) -> None: ...
    def __repr__(self) -> str: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
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
    def copy(
        self, job_id: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> Job: ...
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
    def list(
        self,
        filter: JobFilter | None = None,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        fingerprint: str | None = None,
        search: Sequence[str] = (),
    ) -> JobPage: ...
    def count(
        self, filter: JobFilter | None = None, *, fingerprint: str | None = None
    ) -> JobCount: ...
    def bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkAnswer: ...
    def start_bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        reason: str | None = None,
    ) -> BulkView: ...
    def bulk_actions(self) -> Sequence[BulkView]: ...
    def bulk_action(self, bulk_id: str) -> BulkView: ...
    def stop_bulk(self, bulk_id: str) -> BulkView: ...
    def resume_bulk(self, bulk_id: str) -> BulkView: ...
    def summary(self) -> Summary: ...
    def errors(
        self,
        *,
        queues: Sequence[str] = (),
        tasks: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> ErrorGroups: ...
    def running(self) -> Running: ...
    def queues(self) -> Sequence[QueueView]: ...
    def pause(
        self,
        queue: str,
        *,
        reason: str | None = None,
        until: datetime | None = None,
        duration: float | None = None,
    ) -> QueuePaused: ...
    def resume(self, queue: str) -> QueuePaused: ...
    def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]: ...
    def workers(self) -> Sequence[Worker]: ...
    def series(self, **wanted: Unpack[SeriesOptions]) -> SeriesView: ...
    def metrics(self) -> str: ...
    def tasks(self) -> Sequence[TaskView]: ...
    def workflows(self) -> Sequence[Workflow]: ...
    def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow: ...
    def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunBegun: ...
    def follow_run(self, job_id: str) -> RunView: ...
    def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]: ...
    def schedules(self) -> Sequence[ScheduleView]: ...
    def schedule(self, name: str) -> ScheduleView: ...
    def put_schedule(
        self, name: str, expression: str, task: str, **options: Unpack[PutOptions]
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
        self, name: str, scope: Scope = "read", **limits: Unpack[KeyLimits]
    ) -> NewKey: ...
    def revoke_key(self, key_id: str) -> KeyView: ...
    def audit(
        self,
        *,
        who: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> AuditPage: ...
    def event_types(self) -> Sequence[EventTypeView]: ...
    def destinations(self) -> Sequence[DestinationView]: ...
    def destination(self, name: str) -> DestinationView: ...
    def put_destination(
        self,
        name: str,
        kind: Any,
        options: Mapping[str, Any],
        *,
        types: Sequence[str] = ("*",),
        secret: str | None = None,
        retries: int = 10,
    ) -> NewDestination: ...
    def remove_destination(self, name: str) -> None: ...
    def enable_destination(self, name: str, enabled: bool = True) -> DestinationView: ...
    def rotate_destination(self, name: str, *, finish: bool = False) -> NewDestination: ...
    def test_destination(self, name: str) -> Job: ...
    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        type: Any = Any,
    ) -> Any: ...

Client = SyncClient
