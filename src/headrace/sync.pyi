# Made by `python -m tests.support.sync_stubs`; do not edit.

import builtins
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Concatenate, Self, TypeVar, Unpack, overload

from headrace import app as app_module
from headrace.app import T
from headrace.dispatchers.cron.schedules import ScheduleOptions
from headrace.engine.base import Engine
from headrace.enqueue import OnProgress
from headrace.loop_thread import LoopThread
from headrace.model.context import Context
from headrace.model.job import Job, JobFilter, NewJob, OnCrash
from headrace.model.lane import Lane
from headrace.model.policy import Isolation
from headrace.model.retry import RetryPolicy
from headrace.model.schedule import Schedule
from headrace.model.views import Delivery, JobPage
from headrace.task import Task
from headrace.task.registry import P, R, TaskDecorator

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
    def engine(self) -> Engine: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value: ...
    def schedule(self, expression: str, **options: Unpack[ScheduleOptions]) -> Callable[[T], T]: ...
    def add_schedule(
        self, task: Task[..., Any] | str, expression: str, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    def enqueue_job(self, job: NewJob, *, connection: Any = None) -> Job: ...
    def enqueue_many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        on_progress: OnProgress | None = None,
    ) -> builtins.list[Job]: ...
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
    def open(self) -> None: ...
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
