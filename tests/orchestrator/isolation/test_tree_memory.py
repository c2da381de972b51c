"""A handler and all that it starts may use so much memory together; more, and all are killed."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.errors import InvalidSetting
from headrace.model.retry import retryable
from headrace.model.status import Status
from headrace.orchestrator.isolation import ProcessPool, tree_memory
from headrace.orchestrator.isolation.supervisor import _stat
from headrace.orchestrator.isolation.tree_limit import TreeLimit
from headrace.orchestrator.isolation.tree_memory import Watched, delegated, limit_tree
from tests.orchestrator.isolation import hungry
from tests.orchestrator.isolation.conftest import Run, gone, pids_in
from tests.support.processes import until

ROOT = Path(__file__).parents[3]
LIMIT = hungry.LIMIT
MISSING = "there is no user-mode-linux (Debian: apt-get install user-mode-linux)"
USED = re.compile(
    r"used ([\d,]+) bytes in (\d+) processes, .* tree_memory_limit is ([\d,]+) \((.*)\)"
)


def told(error: BaseException) -> tuple[int, int, str]:
    """The bytes, the number of processes, and the way, from an error."""
    found = USED.search(str(error))
    assert found is not None, str(error)
    assert found[3] == f"{LIMIT:,}"
    return int(found[1].replace(",", "")), int(found[2]), found[4]


async def test_programs_that_use_too_much_together_are_killed_whole(
    run: Run, tmp_path: Path
) -> None:
    with pytest.raises(MemoryError, match="task 'feast'") as raised:
        await run(hungry.feast, file=str(tmp_path / "pids"), programs=5, mebibytes=60)
    assert type(raised.value) is MemoryError
    assert retryable(raised.value), "as when a process has reached its own limit"
    assert [pid for pid in await pids_in(tmp_path / "pids") if not gone(pid)] == []
    if delegated() is None:
        used, processes, way = told(raised.value)
        assert used > LIMIT
        assert 2 <= processes <= 6
        assert way.startswith("the sum of their PSS, watched")


async def test_programs_that_left_the_session_and_their_parent_count_too(
    run: Run, tmp_path: Path
) -> None:
    with pytest.raises(MemoryError, match="tree_memory_limit"):
        await run(hungry.escape, file=str(tmp_path / "pids"), programs=5, mebibytes=60)
    assert [pid for pid in await pids_in(tmp_path / "pids") if not gone(pid)] == []


async def test_the_handler_itself_counts(run: Run) -> None:
    await run(hungry.unlimited)  # a process without a limit is not used for it
    with pytest.raises(MemoryError, match="tree_memory_limit"):
        await run(hungry.alone, mebibytes=300)


async def test_a_modest_handler_is_left_alone(run: Run, tmp_path: Path) -> None:
    """Also one whose processes share what they use: it is counted once."""
    fed = run(hungry.feast, file=str(tmp_path / "p"), programs=2, mebibytes=20, seconds=0.5)
    shared = run(hungry.share, mebibytes=80, copies=4, seconds=1.0)
    assert [*await asyncio.gather(fed, shared)] == ["fed", 4]


async def test_what_a_handler_leaves_running_counts_and_ends_with_its_process(run: Run) -> None:
    assert await run(hungry.modest, mebibytes=80) == "modest"
    left = int(await run(hungry.leave, mebibytes=110))
    with pytest.raises(MemoryError, match="tree_memory_limit"):
        await run(hungry.modest, mebibytes=80)
    assert gone(left)


async def test_a_limit_that_is_too_small_for_loading_says_so(run: Run) -> None:
    with pytest.raises(MemoryError, match=r"loading .*hungry.* tree_memory_limit is 1,048,576"):
        await run(hungry.starved)
    assert await run(hungry.unlimited) != os.getpid()


async def test_a_worker_and_its_other_jobs_go_on(tmp_path: Path) -> None:
    async with hungry.app as app:
        other = await hungry.feast.enqueue(
            file=str(tmp_path / "other"), programs=1, mebibytes=20, seconds=3.0
        )
        greedy = await hungry.feast.enqueue(file=str(tmp_path / "greedy"), programs=5, mebibytes=60)
        async with asyncio.timeout(60):
            await headrace.JobOrchestrator(app, max_workers=2).run_until_idle()
        job = await app.get(greedy.id)
        assert (job.status, job.error_type, job.attempt) == (Status.SCHEDULED, "MemoryError", 1)
        assert "tree_memory_limit" in (job.error or "")
        assert (await app.get(other.id)).status is Status.COMPLETED
        assert (await app.get(other.id)).attempt == 1


@pytest.fixture
def eaters() -> Iterator[list[int]]:
    """Processes below this one that use 50 MiB each."""
    started = [hungry.eat(50) for _ in range(2)]
    for each in started:
        assert each.stdout is not None
        each.stdout.read(1)
    yield [each.pid for each in started]
    for each in started:
        each.kill()
        each.wait()
        assert each.stdout is not None
        each.stdout.close()


def test_where_pss_cannot_be_read_rss_counts(
    eaters: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for unreadable, way in ((eaters, "rss"), (eaters[:1], "mixed"), ([], "pss")):
        exact = tree_memory.proportional

        def read(pid: int, unreadable: list[int] = unreadable) -> int | None:
            return None if pid in unreadable else exact(pid)  # noqa: B023

        with monkeypatch.context() as patched:
            patched.setattr(tree_memory, "proportional", read)
            tree = Watched(90 * hungry.MEBIBYTE, lambda: eaters)
            assert tree.check()
        assert tree.exceeded is not None
        found, used, processes = tree.exceeded.split()
        assert (found, processes) == (way, "2")
        assert 100 * hungry.MEBIBYTE <= int(used) < 200 * hungry.MEBIBYTE


def work(seconds: float) -> None:
    """Take so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_looking_is_a_small_part_of_the_work(eaters: list[int]) -> None:
    looks = []

    def find() -> list[int]:
        looks.append(1)
        work(0.02)  # there are thousands of processes
        return eaters

    tree = Watched(1_000 * hungry.MEBIBYTE, find)
    assert not tree.check()
    assert tree.pause is not None
    assert tree_memory.LOOK_SECONDS < tree.pause <= tree_memory.LONGEST_SECONDS
    began = time.monotonic()
    for _ in range(1_000):
        tree.check()  # woken by the ends of other processes
    assert len(looks) <= 2 + (time.monotonic() - began) / (0.02 * tree_memory.SHARE)


def test_there_is_a_look_each_second_however_long_it_takes(eaters: list[int]) -> None:
    def find() -> list[int]:
        work(0.1)
        return eaters

    tree = Watched(1_000 * hungry.MEBIBYTE, find)
    assert not tree.check()
    assert tree.pause is not None
    assert tree.pause <= tree_memory.LONGEST_SECONDS < 0.1 * tree_memory.SHARE


def test_on_a_busy_machine_it_is_looked_at_as_often(eaters: list[int]) -> None:
    """A look that waits for a processor lasts longer, and a hungry tree would grow for longer."""

    def find() -> list[int]:
        time.sleep(0.1)
        return eaters

    tree = Watched(1_000 * hungry.MEBIBYTE, find)
    assert not tree.check()
    assert tree.pause is not None
    assert tree.pause < 0.1 * tree_memory.SHARE / 4


def test_what_was_swapped_out_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("VmPeak:\t 900 kB\nVmRSS:\t 30 kB\nVmSwap:\t 12 kB\n")
    (tmp_path / "7" / "smaps_rollup").write_text(
        "Rss: 30 kB\nPss: 20 kB\nSwap: 12 kB\nSwapPss: 6 kB\n"
    )
    monkeypatch.setattr(tree_memory, "PROCESSES", str(tmp_path))
    assert tree_memory.resident(7) == 42 * 1_024
    assert tree_memory.proportional(7) == 26 * 1_024


def test_elsewhere_than_on_linux_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InvalidSetting, match=r"tree_memory_limit 1,000 needs Linux.*memory_limit"):
        TreeLimit(1_000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tree_memory_limit": 1_000}, 'tree_memory_limit needs isolate="process"'),
        ({"tree_memory_limit": 0, "isolate": "process"}, "must be a number of bytes, got 0"),
        ({"tree_memory_limit": "4g", "isolate": "process"}, "must be a number of bytes, got '4g'"),
        ({"tree_memory_limit": float("inf"), "isolate": "process"}, "must be a number of bytes"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(words)):
        headrace.App("sqlite://").task(**options)(hungry.starved.function)


def test_processes_that_have_ended_use_nothing(eaters: list[int]) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    assert ended.wait() == 0
    assert tree_memory.resident(ended.pid) == 0
    assert tree_memory.proportional(ended.pid) == 0
    assert (tree_memory.proportional(eaters[0]) or 0) > 50 * hungry.MEBIBYTE


def test_a_folder_that_is_no_cgroup_is_not_used(tmp_path: Path) -> None:
    def tree() -> object:
        return limit_tree(LIMIT, find=list, began=lambda pid: _stat(pid)[2], parent=str(tmp_path))

    assert isinstance(tree(), Watched)
    # Neither is one with the right files and no kernel behind them.
    (tmp_path / "cgroup.subtree_control").write_text("memory")
    assert isinstance(tree(), Watched)
    assert [each.name for each in tmp_path.iterdir()] == ["cgroup.subtree_control"]


@pytest.mark.timeout(300)
@pytest.mark.skipif(not shutil.which("linux.uml"), reason=f"no cgroup can be made here: {MISSING}")
async def test_a_cgroup_keeps_the_limit_where_one_is_delegated(tmp_path: Path) -> None:
    """In a kernel of its own, as this one may have no cgroups of version 2, or not delegate any."""
    init = tmp_path / "init"
    program = [sys.executable, "-B", "-m", "tests.orchestrator.isolation.cgroup_trial"]
    init.write_text(
        "#!/bin/sh\nmount -t proc proc /proc; mount -t sysfs sys /sys; "
        "mount -t cgroup2 none /sys/fs/cgroup; mount -t tmpfs tmp /run\n"
        f"echo TRIAL; cd {ROOT} && PYTHONPATH={ROOT} TMPDIR=/run {shlex.join(program)}\n"
        "echo o > /proc/sysrq-trigger; sleep 60\n"
    )
    init.chmod(0o755)
    kernel = await asyncio.create_subprocess_exec(
        *("linux.uml", "mem=768M", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"),
        *("con=null", "con0=null,fd:1", f"uml_dir={tmp_path}/", "umid=trial", "quiet"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(280):
            said = (await kernel.communicate())[0].decode(errors="replace")
    finally:
        if kernel.returncode is None:
            os.killpg(kernel.pid, signal.SIGKILL)
            await kernel.wait()
    if "TRIAL" not in said:
        pytest.skip(f"no cgroup can be made here: user-mode-linux does not start: {said[-200:]}")
    assert "ALL IS WELL" in said, said[-5_000:]


async def test_idle_processes_without_the_option_are_not_watched(
    pool: ProcessPool, run: Run
) -> None:
    supervisor = await run(hungry.unlimited)
    await until(lambda: _sleeping(supervisor))
    before = _switches(supervisor)
    await asyncio.sleep(0.3)  # six looks
    assert _switches(supervisor) == before


def _sleeping(pid: int) -> bool:
    return _stat(pid)[0] == b"S"


def _switches(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])
