"""Isolated handlers as whole jobs: enqueued, run by a worker, settled in an engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from headrace import App, Job, JobFailed, JobOrchestrator, Status
from headrace.artifacts import open_store
from headrace.orchestrator.isolation import child_process as process_module
from headrace.orchestrator.isolation.protocol import FromChild, decode_from_child
from headrace.task import Task
from headrace.testing import override
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import gone, pids_in, until


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with handlers.app as app:
        yield app


async def outcome(app: App, job: Job) -> Job:
    async with asyncio.timeout(60):
        await JobOrchestrator(app, max_workers=2).run_until_idle()
    return await app.get(job.id)


async def test_a_job_completes_in_a_child(app: App) -> None:
    job = await outcome(app, await handlers.add.enqueue(a=3))
    assert (job.status, job.result) == (Status.COMPLETED, 5)


async def test_a_failure_is_kept_with_the_traceback_of_the_child(app: App) -> None:
    job = await outcome(app, await handlers.fail.enqueue(kind="own"))
    assert (job.status, job.error_type, job.error) == (
        Status.FAILED,
        "BadDocument",
        "no such page",
    )
    [attempt] = job.attempts
    assert attempt.failure is not None
    assert "handlers.py" in (attempt.failure.traceback or "")


@pytest.mark.parametrize(
    ("task", "arguments", "error_type"),
    [
        (handlers.end, {"how": "segfault"}, "ChildDied"),
        (handlers.fill, {"mebibytes": 900}, "MemoryError"),
        (handlers.fail, {"kind": "value"}, "ValueError"),
    ],
)
async def test_a_crash_waits_for_a_retry(
    app: App, task: Task[..., object], arguments: dict[str, object], error_type: str
) -> None:
    job = await outcome(app, await app.enqueue(task.name, arguments))
    assert job.status is Status.SCHEDULED
    [attempt] = job.attempts
    assert attempt.failure is not None
    assert attempt.failure.type == error_type


async def test_a_result_beyond_the_limit_is_refused_in_the_child(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def decode(body: bytes | bytearray) -> FromChild:
        lengths.append(len(body))
        return decode_from_child(body)

    monkeypatch.setattr(process_module, "decode_from_child", decode)
    job = await outcome(app, await handlers.large.enqueue(size=20 * handlers.MEBIBYTE))
    assert (job.status, job.error_type, job.attempt) == (Status.FAILED, "PayloadTooLarge", 1)
    assert "the result takes 20,971,522 bytes, the limit is 1,048,576" in (job.error or "")
    assert max(lengths) < 100_000, "it was not sent to the worker"


async def test_a_payload_limit_above_that_of_the_channel_is_kept(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "LONGEST_FROM_CHILD", 100_000)
    settings = msgspec.structs.replace(app.settings, payload_limit=300_000)
    monkeypatch.setattr(app, "settings", settings)
    job = await outcome(app, await handlers.large.enqueue(size=299_998))
    assert (job.status, len(job.result)) == (Status.COMPLETED, 299_998)


@pytest.mark.parametrize("task", [handlers.hang, handlers.sleep])
async def test_a_timeout_kills_the_child(app: App, task: Task[..., object], tmp_path: Path) -> None:
    file = tmp_path / "pids"
    job = await outcome(app, await task.options(timeout=2, retries=0).enqueue(file=str(file)))
    assert job.status is Status.TIMEOUT
    for pid in await pids_in(file):
        await until(lambda pid=pid: gone(pid))  # type: ignore[misc]


async def test_a_cancel_kills_the_child(app: App, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    job = await handlers.hang.enqueue(file=str(file))
    async with JobOrchestrator(app, max_workers=2), asyncio.timeout(60):
        pids = await pids_in(file)
        await app.cancel(job.id)
        with pytest.raises(JobFailed, match="cancelled"):
            await app.result(job.id)
        assert gone(pids[0])


async def test_a_stage_that_finished_is_not_run_again(app: App) -> None:
    job = await handlers.staged.options(retries=0).enqueue(fail_at="second")
    assert (await outcome(app, job)).status is Status.FAILED
    [entry] = await app.engine.entries(job.id, "stage")
    assert entry.name == "first"
    await app.retry(job.id)
    assert (await outcome(app, job)).error == "the second broke"
    assert [each.name for each in await app.engine.entries(job.id, "stage")] == ["first"]


async def test_a_stage_that_is_given_up_before_it_begins_can_be_run_later(app: App) -> None:
    job = await handlers.stage_given_up_at_once.options(retries=0).enqueue()
    over = await outcome(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, 2), over.error


async def test_progress_logs_and_artifacts_reach_the_worker(
    app: App, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(app, "artifact_store", open_store(tmp_path))
    progressing = await handlers.progressing.enqueue(times=10)
    speaking = await handlers.logging_things.enqueue()
    keeping = await outcome(app, await handlers.keeping.enqueue())
    assert (await app.get(progressing.id)).message == "at 10"
    [record] = [record for record in caplog.records if "the job's own: 5" in record.message]
    assert record.__dict__["job_id"] == speaking.id
    assert keeping.result[1] == [0, 255]
    assert (tmp_path / keeping.result[0]).read_bytes() == b"\x00\xff"


async def test_what_a_child_enqueues_does_not_vanish_in_its_own_memory(app: App) -> None:
    first = await outcome(app, await handlers.enqueues_another.options(retries=0).enqueue())
    assert first.status is Status.FAILED
    assert "cannot reach them; make jobs by ctx.spawn, or use a file" in (first.error or "")


async def test_what_a_child_enqueues_goes_to_the_engine_of_the_worker(tmp_path: Path) -> None:
    async with override(handlers.app, url=f"sqlite:///{tmp_path}/jobs.db") as app:
        first = await outcome(app, await handlers.enqueues_another.enqueue())
        assert first.status is Status.COMPLETED, first.error
        assert (await app.get(first.result)).result == 42
