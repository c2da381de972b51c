"""Run as root in a kernel of its own, with cgroups of version 2: `tree_memory_limit` by a cgroup.

As under systemd with `Delegate=memory` and `DelegateSubgroup=worker`. Prints ALL IS WELL.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import pytest

from headrace.orchestrator.isolation import ProcessPool
from headrace.orchestrator.isolation.tree_memory import PREFIX, delegated
from headrace.task import Task
from tests.orchestrator.isolation import hungry
from tests.orchestrator.isolation.conftest import RecordingContext, a_claim, gone, pids_in

ROOT = Path("/sys/fs/cgroup")
SERVICE = ROOT / "headrace.service"
WORKER = SERVICE / "worker"


def be_a_service() -> None:
    """Be where systemd puts a service."""
    (ROOT / "cgroup.subtree_control").write_text("+memory")
    WORKER.mkdir(parents=True)
    assert delegated() is None
    (WORKER / "cgroup.procs").write_text(str(os.getpid()))
    assert delegated() is None, "to be allowed to write is not enough"
    os.setxattr(SERVICE, "user.delegate", b"1")
    assert delegated() == str(SERVICE)


def made() -> list[str]:
    """The cgroups of children that are there."""
    return [each.name for each in SERVICE.iterdir() if each.name.startswith(PREFIX)]


async def run(pool: ProcessPool, task: Task[..., object], **arguments: object) -> bytes:
    job = a_claim(task, **arguments)
    return await pool.run(task, job, RecordingContext(job))


async def main() -> None:
    be_a_service()
    left = SERVICE / f"{PREFIX}1-1"
    left.mkdir()
    folder = Path(tempfile.mkdtemp())
    pool = ProcessPool(app_path=None, size=4)
    file = folder / "modest"
    modest = asyncio.ensure_future(
        run(pool, hungry.feast, file=str(file), programs=1, mebibytes=20, seconds=1.0)
    )
    await pids_in(file)
    assert len(made()) == 1, f"{made()}: and what a killed supervisor has left is removed"
    file = folder / "greedy"
    with pytest.raises(MemoryError, match="limited by a cgroup") as raised:
        await run(pool, hungry.escape, file=str(file), programs=4, mebibytes=60)
    print(raised.value)
    assert f"tree_memory_limit is {hungry.LIMIT:,}" in str(raised.value)
    assert [pid for pid in await pids_in(file) if not gone(pid)] == []
    assert await modest == b'"fed"'
    await pool.close()
    assert made() == []
    print("ALL IS WELL")


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
