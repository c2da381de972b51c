"""A pool, a job to give it, and a context that writes down what is done to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import pytest

from headrace.errors import InvalidName
from headrace.model.context import Artifacts, Context
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob
from headrace.orchestrator.isolation import ProcessPool
from headrace.task import Task
from headrace.task.codec import encode


class Shelf(Artifacts):
    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str | None]] = {}

    async def put(
        self, name: str, data: bytes, *, layer: str = "artifacts", media_type: str | None = None
    ) -> str:
        self.files[f"{layer}/{name}"] = data, media_type
        return f"{layer}/{name}"

    async def get(self, name: str, *, layer: str = "artifacts") -> bytes:
        if f"{layer}/{name}" not in self.files:
            raise InvalidName(f"no artifact {name!r}")
        return self.files[f"{layer}/{name}"][0]

    async def list(self) -> list[str]:
        return list(self.files)


class RecordingContext(Context):
    """The worker's side of a context, kept in memory."""

    def __init__(self, job: ClaimedJob, kept: dict[str, Any] | None = None) -> None:
        self.job_id, self.task, self.queue = job.id, job.task, job.queue
        self.attempt, self.max_attempts, self.token = job.attempt, job.max_attempts, job.token
        self.key, self.lane = job.key or job.id, job.lane
        logger = logging.getLogger("recorded")
        logger.setLevel(logging.INFO)
        self.log = logging.LoggerAdapter(logger, {"job_id": job.id})
        self.artifacts: Shelf = Shelf()
        self.told: list[tuple[float, str | None]] = []
        self.stages: list[str] = []
        self.kept: dict[str, Any] = {} if kept is None else kept
        self.stop = False

    @property
    def cancelled(self) -> bool:
        return self.stop

    def progress(self, percent: float, message: str | None = None) -> None:
        self.told.append((percent, message))

    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> Any:
        if name in self.kept:
            return self.kept[name]
        self.stages.append(name)
        value = await function(*args, **kwargs)
        self.kept[name] = msgspec.json.decode(encode(value))
        self.stages.append(done or f"{name} is done")
        return value


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
    async with asyncio.timeout(20):
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


async def until(condition: Callable[[], bool], limit: float = 20.0) -> None:
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
