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
from typing import Any, Literal, TypeVar, Unpack

from headrace.api_types.publishing import NewDestination
from headrace.api_types.requests import JobRequest, PutOptions
from headrace.api_types.responses import (
    AuditPage,
    BulkAnswer,
    ScheduleView,
    TaskView,
)
from headrace.client.base import ClientOptions
from headrace.client.client import Client as AsyncClient
from headrace.client.client import OnProgress
from headrace.client.files import File
from headrace.client.job_codec import JobOptions
from headrace.model.artifact import Artifact
from headrace.model.job import Job, JobFilter
from headrace.sync import _Verbs
from headrace.workflows.model import Workflow

Value = TypeVar("Value")
WOULD_BLOCK: str

class SyncClient(_Verbs):
    client: AsyncClient

    def __init__(self, url: str | None = None, **options: Unpack[ClientOptions]) -> None: ...
    def __repr__(self) -> str: ...
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
    def events(
        self,
        job_id: str | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
        on_gap: Callable[[], None] | None = None,
    ) -> Iterator[Job]: ...
    def bulk(
        self,
        action: Literal["cancel", "retry"],
        filter: JobFilter,
        *,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkAnswer: ...
    def artifacts(self, job_id: str) -> Sequence[Artifact]: ...
    def metrics(self) -> str: ...
    def tasks(self) -> Sequence[TaskView]: ...
    def workflows(self) -> Sequence[Workflow]: ...
    def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow: ...
    def schedules(self) -> Sequence[ScheduleView]: ...
    def schedule(self, name: str) -> ScheduleView: ...
    def put_schedule(
        self, name: str, expression: str, task: str, **options: Unpack[PutOptions]
    ) -> ScheduleView: ...
    def trigger_schedule(self, name: str, *, force: bool = False) -> Job: ...
    def audit(self, *, cursor: str | None = None, limit: int = 50) -> AuditPage: ...
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

Client = SyncClient
