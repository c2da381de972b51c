"""What goes into a child process and what comes out of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.errors import NotRetryable
from headrace.orchestrator.isolation import ProcessPool
from headrace.orchestrator.isolation import pool as pool_module
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import RecordingContext, Run, a_claim, gone, until


async def test_a_function_runs_in_another_process(run: Run) -> None:
    assert await run(handlers.add, a=3) == 5
    assert await run(handlers.add, a=3, b=4) == 7


async def test_arguments_and_results_are_typed(run: Run) -> None:
    given = {
        "point": handlers.Point(1, 2),
        "size": handlers.Size(1.5),
        "item": handlers.Item(name="pen"),
        "at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    assert await run(handlers.typed, **given) == {
        "kinds": ["Point", "Size", "Item", "datetime"],
        "sum": 3,
        "item": {"name": "pen", "count": 1},
    }


async def test_the_context_tells_which_attempt_it_is(run: Run) -> None:
    told = await run(
        handlers.about, id="018f", token=9, attempt=3, key="once", lane="a", queue="scans"
    )
    assert told == {
        "job_id": "018f",
        "task": "about",
        "queue": "scans",
        "attempt": 3,
        "max_attempts": 4,
        "token": 9,
        "key": "once",
        "lane": "a",
        "cancelled": False,
    }


async def test_a_result_that_json_cannot_hold_fails_for_good(run: Run) -> None:
    with pytest.raises(NotRetryable, match=r"cannot be kept as its result.*return plain data"):
        await run(handlers.unkeepable)


async def test_prints_do_not_break_the_line(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert await run(handlers.chatty) == ""
    out, err = capfd.readouterr()
    assert out == ""
    for text in ("to standard output", "to standard error", "raw bytes", "from a program"):
        assert text in err


async def test_large_arguments_and_results_travel(run: Run) -> None:
    size = 5 * handlers.MEBIBYTE
    assert len(await run(handlers.large, size=size, text="y" * size)) == size + 1


async def test_a_process_is_used_again(run: Run) -> None:
    first, second = await run(handlers.pid), await run(handlers.pid)
    assert first == second
    [one, before, loop], [two, after, same_loop] = (
        await run(handlers.counted),
        await run(handlers.counted),
    )
    assert (one, two) == (1, 2)
    assert before == after == "nothing", "context variables must not reach the next job"
    assert loop == same_loop, "clients that a module keeps belong to their loop"


async def test_twenty_at_once_share_two_processes(run: Run) -> None:
    async with asyncio.timeout(60):
        pids = await asyncio.gather(*(run(handlers.slow, seconds=0.01) for _ in range(20)))
    assert 1 <= len(set(pids)) <= 2


async def test_a_process_of_another_limit_makes_room(run: Run) -> None:
    pids = await asyncio.gather(*(run(handlers.slow, seconds=0.3) for _ in range(2)))
    limited = await run(handlers.pid_with_a_limit)
    assert limited not in pids
    assert sum(gone(pid) for pid in pids) == 1, "at most two processes at a time"


async def test_a_process_is_replaced_after_many_jobs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "JOBS_PER_CHILD", 2)
    pids = [await run(handlers.pid) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_an_idle_process_leaves(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "IDLE_SECONDS", 0.05)
    pid = await run(handlers.pid)
    await until(lambda: gone(pid))
    assert await run(handlers.pid) != pid


async def test_a_process_that_died_while_idle_costs_no_attempt(run: Run) -> None:
    import os
    import signal

    pid = await run(handlers.pid)
    os.kill(pid, signal.SIGKILL)
    assert await run(handlers.pid) != pid


async def test_the_app_in_a_child_has_the_settings_of_the_worker(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import msgspec

    url = f"sqlite:///{tmp_path}/other.db"
    changed = msgspec.structs.replace(handlers.app.settings, url=url)
    monkeypatch.setattr(handlers.app, "settings", changed)
    assert await run(handlers.settings) == url


async def test_a_closed_pool_runs_nothing(pool: ProcessPool) -> None:
    await pool.close()
    job = a_claim(handlers.pid)
    with pytest.raises(Exception, match="closing"):
        await pool.run(handlers.pid, job, RecordingContext(job))
