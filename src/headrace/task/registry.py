"""The tasks of an App, registered and found by name."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from headrace.errors import InvalidSetting, UnknownTask
from headrace.model.durable.context import Context
from headrace.model.job import Job, NewJob, OnCrash
from headrace.model.limits.breaker import Breaker
from headrace.model.limits.chunk import Chunk
from headrace.model.limits.lane import Lane, as_lane
from headrace.model.limits.rate import Rate
from headrace.model.names import check_name
from headrace.model.policy import Isolation, TaskPolicy, check_never_retry
from headrace.model.retry import RetryPolicy
from headrace.suggest import similar_or_first
from headrace.task.job_options import lane_for
from headrace.task.options import check_options
from headrace.task.stage_hooks import StageHook, check_hook
from headrace.task.task import Task

if TYPE_CHECKING:
    from headrace.artifacts.index import HandedIn
    from headrace.encryption import Sealing
    from headrace.model.artifact import File
    from headrace.task.calls import (
        AsyncContextTask,
        AsyncTask,
        ChunkTask,
        ContextTask,
        PlainTask,
    )

OPTIONS = (
    *TaskPolicy.__struct_fields__,
    *("retries", "rate", "burst", "cost", "count_retries", "breaker"),
)
"""What may be said of a task beside its name."""

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=StageHook)


class TaskDecorator(Protocol):
    """The type of `@app.task(...)`. Handlers may take a Context as first argument, or a Chunk; what
    a job of a chunk returns is an item of what its handler does.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> AsyncContextTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[Chunk[A]], Awaitable[None]], /
    ) -> ChunkTask[A, Any]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[Chunk[A]], Awaitable[Sequence[R | BaseException]]], /
    ) -> ChunkTask[A, R]: ...
    @overload
    def __call__(self, function: Callable[[Chunk[A]], None], /) -> ChunkTask[A, Any]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[Chunk[A]], Sequence[R | BaseException]], /
    ) -> ChunkTask[A, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Awaitable[R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...


class Registering:
    """`task`, which registers handlers."""

    @overload
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> AsyncContextTask[P, R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
    @overload
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[P, Awaitable[R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    @overload
    def task(
        self,
        name: str | None = None,
        *,
        queue: str = "default",
        lane: str | Lane | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = 600.0,
        expires: float | None = None,
        priority: int = 0,
        on_crash: OnCrash = "retry",
        never_retry: Sequence[type[BaseException] | str] = (),
        isolate: Isolation = "none",
        memory_limit: int | None = None,
        tree_memory_limit: int | None = None,
        encrypt: bool | None = None,
        plain_lane: bool = False,
        chunk: int | None = None,
        chunk_wait: float | None = None,
        chunk_by: str | None = None,
        rate: str | Rate | None = None,
        burst: int | None = None,
        cost: float | str | None = None,
        count_retries: bool | None = None,
        breaker: Breaker | None = None,
    ) -> TaskDecorator: ...

    def task(
        self,
        name: Any = None,
        *wrong: Any,
        lane: str | Lane | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        never_retry: Sequence[type[BaseException] | str] = (),
        rate: str | Rate | None = None,
        burst: int | None = None,
        cost: float | str | None = None,
        count_retries: bool | None = None,
        breaker: Breaker | None = None,
        **policy: Any,
    ) -> Any:
        """Register a handler: `@app.task`, or `@app.task("name", queue=…, lane=…, retries=…)`."""
        if wrong:
            raise InvalidSetting(
                f"a task takes its name only by place, got also {wrong[0]!r}; write the others by "
                'name: @app.task("its.name", queue=…)'
            )
        check_options("task", policy, (*OPTIONS, "name"))
        if retries is not None and retry is not None:
            raise InvalidSetting("give retries or retry, not both")
        check_never_retry(never_retry)
        made = TaskPolicy(
            lane=lane_for(as_lane(lane), rate, burst, cost, count_retries, breaker=breaker),
            retry=retry or (RetryPolicy() if retries is None else RetryPolicy(retries=retries)),
            never_retry=tuple(never_retry),
            **policy,
        )
        if callable(name):
            return self._register(None, made, name)
        if name is not None:
            check_name("task", name)
        return functools.partial(self._register, name, made)

    def _register(
        self, name: str | None, policy: TaskPolicy, function: Callable[..., Any]
    ) -> Task[..., Any]:
        raise NotImplementedError


class Registry(Registering):
    """Where tasks are registered, and where their jobs are stored."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}
        # The names of those whose handlers take chunks.
        self.chunk_tasks: set[str] = set()
        # Those of tasks, by their names.
        self.task_breakers: dict[str, Breaker] = {}
        self.stage_hooks: list[StageHook] = []

    @property
    @abstractmethod
    def payload_limit(self) -> int:
        """Return how many bytes the arguments of a job may have."""

    @property
    @abstractmethod
    def sealing(self) -> Sealing | None:
        """Return what seals the values of encrypted tasks; None without keys."""

    @property
    @abstractmethod
    def encrypt_all(self) -> bool:
        """Return whether tasks are encrypted that do not say whether they are."""

    @abstractmethod
    async def enqueue_job(self, job: NewJob[R], *, connection: Any = None) -> Job[R]:
        """Store one job that a task has made."""

    @abstractmethod
    async def enqueue_with_files(
        self,
        files: Mapping[str, File],
        make: Callable[[list[HandedIn]], NewJob],
        *,
        connection: Any = None,
    ) -> tuple[Job, bool]:
        """Store files and the job that `make` makes of them, or neither."""

    def _register(
        self, name: str | None, policy: TaskPolicy, function: Callable[..., Any]
    ) -> Task[..., Any]:
        called = name or getattr(function, "__name__", None)
        if called is None:
            raise InvalidSetting(
                f'{function!r} has no name of its own; give the task one: @app.task("its.name")'
            )
        task: Task[..., Any] = Task(function, name=called, policy=policy, sink=self)
        if task.name in self.tasks:
            raise InvalidSetting(
                f'two tasks are called "{task.name}": '
                f"{_shown(self.tasks[task.name].function)} and {_shown(function)}; "
                'give one of them a name of its own: @app.task("other.name")'
            )
        self.tasks[task.name] = task
        if policy.chunk is not None:
            self.chunk_tasks.add(task.name)
        if policy.lane is not None and policy.lane.breaker is not None:
            self.task_breakers[task.name] = policy.lane.breaker
        return task

    def on_stage(self, hook: H) -> H:
        """Have `async hook(job, stage, done)` called when a stage of a job begins (`done` False),
        and when its result is stored (`done` True), by the worker that runs the job. `stage` is
        what the job shows then. Stages that are skipped, being recorded, are not told.

        An error of the hook is raised by `ctx.stage`, so it fails the attempt. Return the hook:
        this can be used as a decorator.
        """
        check_hook(hook)
        self.stage_hooks.append(hook)
        return hook

    def find_task(self, name: str) -> Task[..., Any]:
        """Return the task of this name. Raises `UnknownTask`, which names the nearest ones."""
        task = self.tasks.get(name)
        if task is None:
            known = similar_or_first(name, self.tasks)
            raise UnknownTask(
                f'Unknown task "{name}". Registered: {known}. Load its module with --app.'
            )
        return task


def _shown(function: Callable[..., Any]) -> str:
    shown: str = getattr(function, "__qualname__", None) or repr(function)
    return shown
