"""The channel between a worker and a child: one job at a time, and only messages of that job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from headrace.errors import NotRetryable
from headrace.orchestrator.isolation import ChildDied, ProcessPool
from headrace.orchestrator.isolation import child_process as process_module
from headrace.orchestrator.isolation.child_process import ChildProcess
from headrace.orchestrator.isolation.protocol import Raised, Returned
from headrace.task import Task
from tests.orchestrator.isolation import unruly
from tests.orchestrator.isolation.conftest import (
    RecordingContext,
    RecordingEntryStore,
    Run,
    a_claim,
    a_pool,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One for all: starting a process takes a while."""
    async with a_pool() as pool:
        yield pool


async def attempt(pool: ProcessPool, task: Task[..., Any], **fields: Any) -> Any:
    job = a_claim(task, **fields)
    return msgspec.json.decode(await pool.run(task, job, RecordingContext(job)))


@pytest.mark.parametrize("fork", ["exec", "return"])
@pytest.mark.parametrize("task", [unruly.invoice, unruly.async_invoice])
async def test_a_forked_copy_of_the_child_never_sends_a_result(
    run: Run, task: Task[..., Any], fork: str
) -> None:
    async with asyncio.timeout(60):
        assert await run(task, number=1, fork=fork) == "invoice 1"
        for number in range(2, 8):
            assert await run(task, number=number) == f"invoice {number}"


async def test_a_copy_forked_below_python_never_sends_a_result(run: Run, tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        await run(unruly.leave_a_copy_that_talks, file=str(tmp_path / "go"))
        (tmp_path / "go").touch()
        assert await run(unruly.rest, seconds=0.5) == "rested"
        assert await run(unruly.add, a=1) == 3


async def test_a_forked_copy_is_told_that_the_context_is_not_its_own(
    capfd: pytest.CaptureFixture[str],
) -> None:
    job = a_claim(unruly.forked_copy_talks)
    context = RecordingContext(job)
    async with a_pool() as pool, asyncio.timeout(60):
        [told] = msgspec.json.decode(await pool.run(unruly.forked_copy_talks, job, context))
    assert "forked" in told
    assert context.told == []
    assert "the copy logs" in capfd.readouterr().err, "its log goes to standard error"


async def test_a_plain_job_is_one_message_each_way(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    send, receive = ChildProcess._send, ChildProcess._receive

    def sending(self: ChildProcess, message: Any) -> None:
        messages.append(type(message).__name__)
        send(self, message)

    async def receiving(self: ChildProcess) -> Any:
        message = await receive(self)
        messages.append(type(message).__name__)
        return message

    assert await run(unruly.add, a=1) == 3
    monkeypatch.setattr(ChildProcess, "_send", sending)
    monkeypatch.setattr(ChildProcess, "_receive", receiving)
    assert await run(unruly.add, a=2) == 4
    assert messages == ["RunJob", "Returned"]


async def test_the_end_of_another_run_is_dropped(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As if an earlier job had ended once more."""
    receive = ChildProcess._receive
    late: list[Returned | Raised] = []

    async def receive_late(self: ChildProcess) -> Any:
        if late and late[0].run < self.jobs:
            return late.pop()
        message = await receive(self)
        if isinstance(message, Returned) and not late:
            late.append(message)
        return message

    monkeypatch.setattr(ChildProcess, "_receive", receive_late)
    assert await run(unruly.add, a=1) == 3
    assert await run(unruly.add, a=5) == 7
    assert "sent the end of run" in caplog.text


async def test_what_a_task_of_an_earlier_job_raises_does_not_end_a_later(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await run(unruly.leave_a_task_that_exits)
    assert await run(unruly.nap, seconds=0.5) == "rested"
    assert await run(unruly.nap, seconds=0) == "rested"
    assert "by an earlier job" in caplog.text


async def test_an_alarm_of_an_earlier_job_does_not_ring_in_a_later(run: Run) -> None:
    await run(unruly.leave_an_alarm)
    assert await run(unruly.rest, seconds=0.6) == "rested"


@pytest.mark.parametrize("code", [0, 5])
async def test_a_forked_copy_may_leave_by_exit(run: Run, code: int) -> None:
    assert await run(unruly.fork_and_exit, code=code) == code


async def test_a_message_that_is_announced_too_long_ends_the_child(run: Run) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(ChildDied, match="announced a message of 4,294,967,295 bytes"):
            await run(unruly.scribble, announced=2**32 - 1)
    assert await run(unruly.add, a=1) == 3


async def test_what_is_no_message_ends_the_child(run: Run) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(ChildDied, match="no message"):
            await run(unruly.scribble, announced=1000)
    assert await run(unruly.add, a=1) == 3


async def test_a_stage_too_large_for_the_channel_fails_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_module, "LONGEST_FROM_CHILD", 100_000)
    async with a_pool() as pool, asyncio.timeout(30):
        assert await attempt(pool, unruly.stage_of, size=90_000) == 90_000
        with pytest.raises(NotRetryable, match=r"stage 'large' .* 200,002 bytes.*artifact"):
            await attempt(pool, unruly.stage_of, size=200_000)
        assert await attempt(pool, unruly.add, a=1) == 3


class LoudEntryStore(RecordingEntryStore):
    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        return b'"' + b"x" * 200_000 + b'"'


async def test_a_reply_too_large_for_the_channel_is_an_error_of_the_call(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_claim(unruly.hear, size=1)
    context = RecordingContext(job)
    context.entry_store = LoudEntryStore(context)
    assert await pool.run(unruly.hear, job, context) == b"200000"
    monkeypatch.setattr(process_module, "LONGEST_FROM_WORKER", 100_000)
    async with asyncio.timeout(30):
        with pytest.raises(NotRetryable, match=r"200,\d\d\d bytes"):
            await pool.run(unruly.hear, job, context)
