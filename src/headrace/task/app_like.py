"""What the parts of Headrace need from the App that they work for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.task.stage_hooks import StageHook
from headrace.task.task import Task

if TYPE_CHECKING:
    from headrace.artifacts import ArtifactStore
    from headrace.artifacts.index import HandedIn
    from headrace.clock import Clock
    from headrace.config import Settings
    from headrace.encryption import Sealing
    from headrace.engine.base import Engine
    from headrace.loops.loop import Loop
    from headrace.model.artifact import File
    from headrace.model.job import Job, NewJob
    from headrace.model.limits.breaker import Breaker
    from headrace.telemetry import Telemetry
    from headrace.tracing.tracer import Tracing


R = TypeVar("R")


class JobSink(Protocol):
    """Stores jobs: the App, as tasks see it."""

    async def enqueue_job(self, job: NewJob[R], *, connection: Any = None) -> Job[R]:
        """Store one job."""

    async def enqueue_with_files(
        self,
        files: Mapping[str, File],
        make: Callable[[list[HandedIn]], NewJob],
        *,
        connection: Any = None,
    ) -> tuple[Job, bool]:
        """Store files and the job that `make` makes of them, or neither. Also return whether it is
        new.
        """

    @property
    def payload_limit(self) -> int:
        """Return how many bytes the arguments of a job may have."""

    @property
    def sealing(self) -> Sealing | None:
        """Return what seals the values of encrypted tasks; None without keys."""

    @property
    def encrypt_all(self) -> bool:
        """Return whether tasks are encrypted that do not say whether they are."""


class AppLike(JobSink, Protocol):
    """An App, as those see it who are imported by it."""

    settings: Settings
    clock: Clock
    tasks: dict[str, Task[..., Any]]
    chunk_tasks: set[str]
    task_breakers: dict[str, Breaker]
    artifact_store: ArtifactStore
    stage_hooks: list[StageHook]
    tracing: Tracing | None

    @property
    def engine(self) -> Engine:
        """Return where the jobs live."""

    async def open(self) -> None:
        """Connect, if that has not been done."""

    def find_task(self, name: str) -> Task[..., Any]:
        """Return the task of this name. Raises `UnknownTask`, which names the nearest ones."""

    def built_in(self, name: str) -> Task[..., Any] | None:
        """Return a task that every worker has, whatever its App."""

    def task_names(self) -> tuple[str, ...]:
        """Return the names of all tasks that a worker of this App knows, built-in ones included."""

    def event_job(
        self,
        event_type: str,
        body: bytes,
        key: str | None,
        job_id: str | None,
        *,
        sealed: bool = False,
    ) -> NewJob:
        """Return the job that publishes an event; `body` is JSON, `job_id` the job that wants it.
        With `sealed` the event is stored sealed. Raises `UnknownEventType`, and `InvalidArguments`
        for a body that does not fit.
        """

    def upkeep(self, *, telemetry: Telemetry, worker: Callable[[], str]) -> Sequence[Loop]:
        """Return the loops that every worker runs: maintenance, and publishing its metrics."""
