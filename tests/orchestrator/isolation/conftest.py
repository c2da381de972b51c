"""A pool, a job for it, and a context that records what is done to it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import pytest

from headrace.artifacts.content import source_of
from headrace.errors import ArtifactNotFound, Suspended
from headrace.model.artifact import Artifact, Artifacts, Content, KeptFile
from headrace.model.durable.awaited import AwaitedChildren, AwaitedEvent
from headrace.model.durable.children import EndedChild
from headrace.model.durable.transient_stages import Transient
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob, NewJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.entry_names import EntryNames
from headrace.orchestrator.durable.entry_store import EntryStore
from headrace.orchestrator.durable.stage_call import StageRetry
from headrace.orchestrator.isolation import ProcessPool
from headrace.task import Task
from headrace.task.codec import encode


class MemoryArtifacts(Artifacts):
    """The files of a job in memory. A path is a layer and a name."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str | None]] = {}
        self.chunks = 0

    async def put(
        self,
        name: str,
        data: Content,
        *,
        layer: str = "artifacts",
        media_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        chunks = [chunk async for chunk in source_of(data).chunks()]
        self.chunks += len(chunks)
        self.files[f"{layer}/{name}"] = b"".join(chunks), media_type
        return f"{layer}/{name}"

    async def stream(
        self, name: str, *, layer: str = "artifacts", start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        yield self.files[name][0][start:end]

    async def find(self, name: str, *, layer: str = "artifacts") -> Artifact:
        path = name if name in self.files else f"{layer}/{name}"
        if path not in self.files:
            raise ArtifactNotFound(f"no artifact {name!r}")
        content, media_type = self.files[path]
        size, sha256 = len(content), hashlib.sha256(content).hexdigest()
        return Artifact(
            layer=layer, name=name, path=path, size=size, sha256=sha256, media_type=media_type
        )

    async def keep(
        self, name: str, *, owner: str, reason: str = "", layer: str = "artifacts"
    ) -> KeptFile:
        file = await self.find(name, layer=layer)
        return KeptFile(
            path=file.path,
            owner=owner,
            reason=reason,
            size=file.size,
            layer=layer,
            job_id="",
            name=file.name,
            at=datetime.now(UTC),
        )

    async def list(self) -> list[Artifact]:
        return [await self.find(path) for path in self.files]

    async def save(self, name: str, target: Path, *, layer: str = "artifacts") -> None:
        raise NotImplementedError


class RecordingEntryStore(EntryStore):
    """Keeps stages in memory. What suspends a job is tested in tests/orchestrator/durable."""

    def __init__(self, context: RecordingContext) -> None:
        self._context = context

    async def stage(
        self,
        entry_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
        transient: Transient = None,
    ) -> Any:
        kept, stages = self._context.kept, self._context.stages
        if entry_name in kept:
            return kept[entry_name]
        stages.append(entry_name)
        value = await call()
        kept[entry_name] = msgspec.json.decode(encode(value))
        stages.append(done or f"{entry_name} is done")
        return value

    async def sleep(self, entry_name: str, seconds: float | None, until: float | None) -> None:
        raise Suspended(seconds or 0.0)

    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        raise Suspended(timeout or 0.0, (AwaitedEvent(event),))

    async def spawn(self, entry_name: str, jobs: list[NewJob]) -> list[str]:
        return [job.id for job in jobs]

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        raise Suspended(1.0, (AwaitedChildren(None, 0),))

    def follow(self, jobs: list[NewJob], on: str) -> None:
        raise NotImplementedError

    def publish(self, event_type: str, body: bytes, key: str | None, on: str) -> str:
        raise NotImplementedError


class RecordingContext(DurableContext):
    """The worker's side of a context, kept in memory."""

    def __init__(self, job: ClaimedJob, kept: dict[str, Any] | None = None) -> None:
        self.job_id, self.task, self.queue = job.id, job.task, job.queue
        self.attempt, self.max_attempts, self.token = job.attempt, job.max_attempts, job.token
        self.key, self.lane = job.key or job.id, job.lane
        logger = logging.getLogger("recorded")
        logger.setLevel(logging.INFO)
        self.log = logging.LoggerAdapter(logger, {"job_id": job.id})
        self.artifacts: MemoryArtifacts = MemoryArtifacts()
        self.told: list[tuple[float, str | None]] = []
        self.stages: list[str] = []
        self.kept: dict[str, Any] = {} if kept is None else kept
        self.stop = False
        self.entry_store = RecordingEntryStore(self)
        self.entry_names = EntryNames()
        self.tasks = {}

    @property
    def cancelled(self) -> bool:
        return self.stop

    def progress(self, percent: float, message: str | None = None) -> None:
        self.told.append((percent, message))


def a_claim(task: Task[..., Any], **fields: Any) -> ClaimedJob:
    """A job of this task, as a worker holds it. What is not a field of the job is an argument."""
    known = {
        name: fields.pop(name) for name in list(fields) if name in ClaimedJob.__struct_fields__
    }
    return ClaimedJob(
        **{
            "id": new_id(),
            "token": 1,
            "attempt": 1,
            "task": task.name,
            "queue": "default",
            "args": task.signature.encode((), fields),
            "max_attempts": 4,
            "timeout": None,
            **known,
        }
    )


Run = Callable[..., Awaitable[Any]]


@contextlib.asynccontextmanager
async def a_pool() -> AsyncIterator[ProcessPool]:
    """A pool. When the test is over, no process of it is left."""
    pool = ProcessPool(app_path=None, size=2)
    before = {child.pid for child in psutil.Process().children()}
    yield pool
    async with asyncio.timeout(60):
        await pool.close()
    # Only through children that are new: a server that the tests started forks as it likes.
    new = [child for child in psutil.Process().children() if child.pid not in before]
    assert [each for child in new for each in (child, *child.children(recursive=True))] == []


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    async with a_pool() as pool:
        yield pool


@pytest.fixture
def run(pool: ProcessPool) -> Run:
    """Run a task in the pool and answer its result, decoded."""

    async def run(task: Task[..., Any], **fields: Any) -> Any:
        job = a_claim(task, **fields)
        return msgspec.json.decode(await pool.run(task, job, RecordingContext(job)))

    return run


async def until(condition: Callable[[], bool], limit: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it did not come to pass in time"
        await asyncio.sleep(0.01)


async def pids_in(file: Path) -> list[int]:
    """The process ids that a handler has written down."""
    await until(lambda: _read(file) != "")
    return [int(text) for text in _read(file).split()]


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has ended as well."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
