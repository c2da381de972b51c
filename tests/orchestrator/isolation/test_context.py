"""The context in a child: what a handler does with it happens in the worker."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from headrace.errors import ArtifactNotFound, InvalidInput, LeaseLost, NotRetryable
from headrace.orchestrator.isolation import ProcessPool
from headrace.task import Task
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import (
    MemoryArtifacts,
    RecordingContext,
    RecordingEntryStore,
    a_claim,
    a_pool,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One for all: starting a process takes a while."""
    async with a_pool() as pool:
        yield pool


async def attempt(
    pool: ProcessPool,
    task: Task[..., Any],
    context_class: type[RecordingContext] = RecordingContext,
    kept: dict[str, Any] | None = None,
    **fields: Any,
) -> tuple[Any, RecordingContext]:
    job = a_claim(task, **fields)
    context = context_class(job, kept)
    return msgspec.json.decode(await pool.run(task, job, context)), context


async def test_stages_run_in_the_child_and_are_kept_by_the_worker(pool: ProcessPool) -> None:
    value, context = await attempt(pool, handlers.staged)
    assert value == ["Point", 3]
    assert context.stages == ["first", "firsted", "second", "second is done"]
    assert context.kept == {"first": {"x": 1, "y": 2}, "second": 3}


async def test_a_kept_stage_does_not_run_again_and_is_typed(pool: ProcessPool) -> None:
    value, context = await attempt(pool, handlers.staged, kept={"first": {"x": 5, "y": 6}})
    assert value == ["Point", 11]
    assert context.stages == ["second", "second is done"]


async def test_a_stage_that_raises_is_not_kept(pool: ProcessPool) -> None:
    kept: dict[str, Any] = {}
    with pytest.raises(ValueError, match="the second broke") as raised:
        await attempt(pool, handlers.staged, kept=kept, fail_at="second")
    assert kept == {"first": {"x": 1, "y": 2}}
    assert "handlers.py" in str(raised.value.__cause__)


async def test_stages_of_a_function_and_at_once(pool: ProcessPool) -> None:
    assert (await attempt(pool, handlers.staged_in_a_function))[0] == 5
    value, context = await attempt(pool, handlers.staged_at_once)
    assert value == list(range(10))
    assert len(context.kept) == 10


async def test_a_stage_that_the_handler_gives_up_ends_in_the_worker(pool: ProcessPool) -> None:
    value, context = await attempt(pool, handlers.impatient)
    assert value == "went on"
    assert context.kept == {}


async def test_a_stage_whose_result_cannot_be_kept_fails_for_good(pool: ProcessPool) -> None:
    with pytest.raises(NotRetryable, match="stage 'odd' returned what cannot be kept"):
        await attempt(pool, handlers.unkeepable_stage)


class FencedEntryStore(RecordingEntryStore):
    async def stage(self, *args: Any, **kwargs: Any) -> Any:
        await super().stage(*args, **kwargs)
        raise LeaseLost("another worker owns it")


class Fenced(RecordingContext):
    """A context whose lease is lost."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry_store = FencedEntryStore(self)


async def test_a_refused_checkpoint_ends_the_handler(pool: ProcessPool) -> None:
    with pytest.raises(LeaseLost, match="another worker owns it"):
        await attempt(pool, handlers.staged, Fenced)


async def test_progress_is_told_and_the_latest_counts(pool: ProcessPool) -> None:
    _, context = await attempt(pool, handlers.progressing, times=5_000)
    assert context.told[0] == (0.02, "at 1")
    assert context.told[-1] == (100.0, "at 5000")
    assert context.told == sorted(context.told)
    assert len(context.told) < 5_000, "those that nobody could see are left out"


async def test_progress_out_of_range_is_refused(pool: ProcessPool) -> None:
    with pytest.raises(InvalidInput, match="between 0 and 100, got 101"):
        await attempt(pool, handlers.progressing_too_far)


async def test_log_records_arrive_at_the_loggers_of_the_worker(
    pool: ProcessPool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    _, context = await attempt(pool, handlers.logging_things)
    [own, modules, traced] = [r for r in caplog.records if r.name in ("recorded", "handlers")]
    assert (own.name, own.levelname, own.getMessage()) == ("recorded", "INFO", "the job's own: 5")
    assert own.__dict__["job_id"] == context.job_id
    assert own.pathname == handlers.__file__
    assert (own.funcName, own.threadName) == ("logging_things", "MainThread")
    assert own.lineno > 0
    assert own.process != os.getpid()
    assert (modules.levelname, modules.getMessage()) == ("WARNING", "the module's own, 100%")
    assert modules.__dict__["shop"] == "corner"
    assert "invalid literal for int" in (traced.exc_text or "")


async def test_artifacts_are_kept_by_the_worker(pool: ProcessPool) -> None:
    value, context = await attempt(pool, handlers.keeping)
    assert value == ["bronze/a.bin", [0, 255], ["bronze/a.bin"]]
    assert context.artifacts.files == {"bronze/a.bin": (b"\x00\xff", "x/y")}
    with pytest.raises(ArtifactNotFound, match="no artifact 'absent'"):
        await attempt(pool, handlers.missing_artifact)


class Refused(RecordingContext):
    """A context whose store takes one chunk of a file and no more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.artifacts = FullArtifacts()


class FullArtifacts(MemoryArtifacts):
    async def put(self, name: str, data: Any, **options: Any) -> str:
        async for _ in data:
            raise LookupError("the disk is full")
        raise AssertionError("no chunk came")


async def test_a_file_that_is_refused_is_not_sent_to_its_end(pool: ProcessPool) -> None:
    [taken, error], _ = await attempt(pool, handlers.sending, Refused, mebibytes=60)
    assert error == "the disk is full"
    assert 1 <= taken < 10
    assert (await attempt(pool, handlers.sending, mebibytes=3))[0] == [3, None]


async def test_a_handler_sees_that_it_should_stop(pool: ProcessPool) -> None:
    job = a_claim(handlers.until_cancelled)
    context = RecordingContext(job)
    running = asyncio.ensure_future(pool.run(handlers.until_cancelled, job, context))
    context.stop = True
    async with asyncio.timeout(60):
        assert await running == b'"stopped by itself"'
    assert (await attempt(pool, handlers.about))[0]["cancelled"] is False


async def test_what_an_earlier_job_left_behind_does_not_speak_for_a_later(
    pool: ProcessPool, caplog: pytest.LogCaptureFixture
) -> None:
    await attempt(pool, handlers.leave_a_thread_behind)
    caplog.clear()
    _, context = await attempt(pool, handlers.slow, seconds=0.3)
    assert context.told == []
    assert "from the past" not in caplog.text
