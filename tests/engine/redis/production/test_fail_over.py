"""Masters that are killed while jobs are enqueued and run: what is lost, what runs twice, and how
soon workers are back.

HEADRACE_TEST_FAIL_OVERS kills more often and prints the counts; see `make fail-overs`.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from headrace.errors import EngineUnavailable
from headrace.model.job import Job
from headrace.model.status import Status
from tests.crash.conftest import Scene
from tests.engine.redis.production.groups import ClusterGroup, SentinelGroup
from tests.engine.redis.production.nodes import Node
from tests.support.processes import Processes, until

ROUNDS = int(os.environ.get("HEADRACE_TEST_FAIL_OVERS", "1"))
LEASE = 20.0
PRODUCERS = 5
# Of the jobs that were acknowledged; the replica has caught up before each kill.
MOST_LOST = 0.05


class Load:
    """Producers and two workers, and what became of what was acknowledged."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.scene = Scene(url, folder, processes)
        self.acknowledged: list[Job] = []
        self.refused = 0
        self.back: list[float] = []
        self.behind: list[int] = []
        self._enough = asyncio.Event()

    async def produce(self) -> None:
        while not self._enough.is_set():
            try:
                job = await self.scene.app.tasks["work"].enqueue(seconds=0.01)
            except EngineUnavailable:
                self.refused += 1
                await asyncio.sleep(0.05)
            else:
                self.acknowledged.append(job)
                await asyncio.sleep(0.02)

    async def run(self, group: SentinelGroup | ClusterGroup) -> None:
        """Kill the master again and again, then let everything come to its end."""
        workers = [self.scene.worker(name, lease=LEASE, slots=4) for name in ("one", "two")]
        await self.scene.has_workers(len(workers))
        producers = [asyncio.create_task(self.produce()) for _ in range(PRODUCERS)]
        await self.scene.happened("end", 100)
        for _ in range(ROUNDS):
            old = self.master(group)
            self.behind.append(behind(old))
            old.kill()
            killed = time.monotonic()
            await until(lambda: self.elected(group, old), "a fail-over")  # noqa: B023
            await asyncio.to_thread(group.revive)
            elected = time.monotonic()

            def all_are_back(since: float = elected) -> bool:
                seen = {line.pid for line in self.scene.lines("end") if line.at > since}
                return {worker.pid for worker in workers} <= seen

            await until(all_are_back, "work by all workers")
            self.back.append(time.monotonic() - killed)
            await asyncio.to_thread(group.wait_until_whole)
            goal = len(self.acknowledged) + 200
            await until(lambda: len(self.acknowledged) >= goal, "further jobs")  # noqa: B023
        self._enough.set()
        await asyncio.gather(*producers)
        await self.scene.all_over()
        for worker in workers:
            assert worker.code is None, worker.said
            worker.terminate()
            assert await worker.ended() == 0, worker.said

    def master(self, group: SentinelGroup | ClusterGroup) -> Node:
        if isinstance(group, SentinelGroup):
            return group.master
        return group.owner(self.scene.app.engine.address.namespace)  # type: ignore[attr-defined]

    def elected(self, group: SentinelGroup | ClusterGroup, old: Node) -> bool:
        try:
            return self.master(group) is not old
        except StopIteration:
            return False

    async def judge(self, what: str) -> None:
        """What is there is done; what was lost is little, and counted."""
        found: dict[str, Job] = {}
        for n in range(0, len(self.acknowledged), 500):
            part = [job.id for job in self.acknowledged[n : n + 500]]
            found |= {job.id: job for job in await self.scene.app.engine.get(part)}
        lost = [job.id for job in self.acknowledged if job.id not in found]
        ends = self.scene.counts("end")
        twice = sum(count > 1 for count in self.scene.counts("start").values())
        lost_unrun = sum(ends[job_id] == 0 for job_id in lost)
        print(
            f"\n{what}: {ROUNDS} kills, acknowledged {len(self.acknowledged)}, refused calls "
            f"{self.refused}, lost {len(lost)} (never run {lost_unrun}), run twice {twice}, "
            f"replica behind by {min(self.behind)} to {max(self.behind)} bytes, "
            f"workers back after {min(self.back):.1f} to {max(self.back):.1f} s"
        )
        assert {job.status for job in found.values()} == {Status.COMPLETED}
        assert all(ends[job_id] for job_id in found)
        assert len(lost) <= MOST_LOST * len(self.acknowledged)
        assert max(self.back) < LEASE
        assert await self.scene.app.engine.audit() == []


def behind(master: Node) -> int:
    """How many bytes the replica has not confirmed; -1 if there is none."""
    told = master.told("INFO", "replication")
    replica = dict(part.split("=") for part in told.get("slave0", "").split(",") if part)
    if replica.get("state") != "online":
        return -1
    return int(told["master_repl_offset"]) - int(replica["offset"])


@pytest.mark.timeout(120 + 40 * ROUNDS)
@pytest.mark.parametrize("careful", [False, True] if ROUNDS > 1 else [False])
async def test_sentinels(sentinels: SentinelGroup, tmp_path: Path, careful: bool) -> None:
    """`careful`: a master that has lost its replica takes nothing."""
    for node in sentinels.servers:
        node.ask("CONFIG", "SET", "min-replicas-to-write", int(careful))
        node.ask("CONFIG", "SET", "min-replicas-max-lag", 2)
    url = sentinels.url(namespace=f"load{int(careful)}", timeout=5)
    with Processes(tmp_path) as processes:
        load = Load(url, tmp_path, processes)
        async with load.scene.app:
            await load.run(sentinels)
            await load.judge("Sentinel, min-replicas-to-write 1" if careful else "Sentinel")


@pytest.mark.timeout(120 + 40 * ROUNDS)
async def test_a_cluster(cluster: ClusterGroup, tmp_path: Path) -> None:
    with_replica = next(
        node
        for node in cluster.members
        if node.told("INFO", "replication").get("connected_slaves") == "1"
    )
    url = cluster.url(namespace=cluster.namespace_of(with_replica, "load"), timeout=5)
    with Processes(tmp_path) as processes:
        load = Load(url, tmp_path, processes)
        async with load.scene.app:
            await load.run(cluster)
            await load.judge("Cluster")
