"""Chunks that fill: claimed jobs of tasks whose handlers take several at once. No I/O.

A group collects jobs of one task until it is full, or until its time is up; then it may start in a
slot. Until then it holds none. A group without a slot goes on collecting.

For how many jobs a worker has room, a group counts as one job, and so does a chunk that runs: both
take one slot. `surplus` are the jobs beyond that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from headrace.clock import Clock
from headrace.model.job import ClaimedJob
from headrace.model.policy import BY_LANE, TaskPolicy
from headrace.orchestrator.claiming.prefetch import PATIENCE, PrefetchLimit
from headrace.orchestrator.running.attempt import LONGEST_PAUSE, monotonic
from headrace.task import Task

# What the jobs of a chunk have in common: the task, its time limit, and what `chunk_by` asks for.
Key = tuple[str, float | None, Any]


class ChunkGroup(msgspec.Struct, eq=False):
    """Jobs that wait to be run by one call."""

    key: Key
    size: int
    # By the clock that tests can advance.
    due: float
    jobs: list[ClaimedJob]
    # Since when it may start (`time.monotonic`); None while it waits for others.
    ready_at: float | None = None


class ChunkCollector:
    """The groups of one worker. Used on the event loop only."""

    def __init__(
        self, *, names: Collection[str], tasks: Mapping[str, Task[..., Any]], clock: Clock
    ) -> None:
        # Tasks that ask for chunks. While there are none, nothing here is used.
        self.names = names
        # May start, the one that waits longest first.
        self.ready: deque[ChunkGroup] = deque()
        self.surplus = 0
        # Called when a group may start.
        self.on_ready: Callable[[], None] = lambda: None
        # Start what there is as soon as the queues are empty: nobody waits for more.
        self.eager = False
        self._tasks = tasks
        self._clock = clock
        # Those that take more jobs, also if they may start.
        self._open: dict[Key, ChunkGroup] = {}
        self._timer: asyncio.TimerHandle | None = None
        # How many of the jobs that came when more were asked for went into a group that was there.
        self._share = 1.0
        self._asked = False

    def collect(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Take the jobs of tasks with chunks, and return the others."""
        others: list[ClaimedJob] = []
        joined = 0
        for job in jobs:
            policy = self._policy(job)
            if policy is None:
                others.append(job)
            else:
                joined += self._add(job, policy)
        if self._asked and jobs:
            self._asked = False
            self._share += (joined / len(jobs) - self._share) / 2
        self._check()
        return others

    def room(self, room: int, prefetch: PrefetchLimit) -> tuple[int, bool]:
        """Return for how many jobs there is room, and whether groups are to be filled. `room` is
        what there is if each job takes a slot.

        A claim cannot ask for a task, so what comes may be jobs of others, for which there is no
        slot. So for groups it is as many as they lack, times the share that went into them lately.
        """
        room += self.surplus
        wanted = sum(each.size - len(each.jobs) for each in self._filling()) if room >= 0 else 0
        self._asked = wanted > 0
        if not wanted:
            return room, False
        return room + prefetch.fitting(max(int(wanted * self._share), 1)), True

    def free(self, slots: int) -> int:
        """Return how many jobs could start now or join a group that is filled. `slots` is how many
        could if each took a slot.
        """
        free = slots + self.surplus
        return max(free, 0) + sum(each.size - len(each.jobs) for each in self._filling())

    def take(self) -> list[ClaimedJob]:
        """Remove the group that waits longest, for a slot, and return its jobs."""
        group = self.ready.popleft()
        self._close(group)
        return group.jobs

    def remove(self, job_id: str, token: int) -> ClaimedJob | None:
        """Remove one job that waits; None if there is no such."""
        for group in self._groups():
            for job in group.jobs:
                if job.id == job_id and job.token == token:
                    if len(group.jobs) == 1:
                        self._drop(group)
                    else:
                        group.jobs.remove(job)
                        self.surplus -= 1
                    return job
        return None

    def take_all(self) -> list[ClaimedJob]:
        """Remove and return every job that waits."""
        return [job for group in self._groups() for job in self._drop(group)]

    def take_overdue(self, now: float) -> list[ClaimedJob]:
        """Remove the groups that may start and have found no slot for too long."""
        late = [each for each in self.ready if now - (each.ready_at or now) >= PATIENCE]
        return [job for group in late for job in self._drop(group)]

    def next_overdue(self) -> float:
        """Return when the next group will have waited too long."""
        return min(((each.ready_at or 0.0) + PATIENCE for each in self.ready), default=float("inf"))

    def queues_empty(self) -> None:
        """There is nothing more to claim now."""
        if self.eager and (groups := self._filling()):
            self._make_ready(groups)
            self.on_ready()

    def member_over(self) -> None:
        """A job of a chunk that runs has its outcome."""
        self.surplus -= 1

    def call_over(self) -> None:
        """A chunk that ran has left its slot; all its jobs have their outcomes."""
        self.surplus += 1

    def _policy(self, job: ClaimedJob) -> TaskPolicy | None:
        if job.task not in self.names or (task := self._tasks.get(job.task)) is None:
            return None
        return task.policy if task.policy.chunk is not None else None

    def _add(self, job: ClaimedJob, policy: TaskPolicy) -> bool:
        """Add a job. Return whether its group was there."""
        key = (job.task, job.timeout, _common(job, policy.chunk_by))
        group = self._open.get(key)
        joins = group is not None
        if group is None:
            due = self._now() + policy.seconds_to_fill
            group = self._open[key] = ChunkGroup(key, policy.chunk or 1, due, [])
        group.jobs.append(job)
        self.surplus += joins
        if len(group.jobs) >= group.size:
            self._close(group)
            self._make_ready([group])
        return joins

    def _check(self) -> None:
        """Let groups start whose time is up, and look again when that of the next is."""
        now = self._now()
        self._make_ready([each for each in self._filling() if each.due <= now])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min((each.due for each in self._filling()), default=None)
        if due is not None:
            # Clocks of tests jump.
            pause = min(max(due - now, 0.0), LONGEST_PAUSE)
            self._timer = asyncio.get_running_loop().call_later(pause, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._check()
        if self.ready:
            self.on_ready()

    def _make_ready(self, groups: Sequence[ChunkGroup]) -> None:
        for group in groups:
            if group.ready_at is None:
                group.ready_at = monotonic()
                self.ready.append(group)

    def _filling(self) -> list[ChunkGroup]:
        return [each for each in self._open.values() if each.ready_at is None]

    def _groups(self) -> list[ChunkGroup]:
        return [*self.ready, *self._filling()]

    def _close(self, group: ChunkGroup) -> None:
        if self._open.get(group.key) is group:
            del self._open[group.key]

    def _drop(self, group: ChunkGroup) -> list[ClaimedJob]:
        self._close(group)
        if group.ready_at is not None:
            self.ready.remove(group)
        self.surplus -= len(group.jobs) - 1
        return group.jobs

    def _now(self) -> float:
        return monotonic() + self._clock.offset


_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _common(job: ClaimedJob, by: str | None) -> Any:
    """Return what the jobs of a chunk have in common. An argument counts as it is written: what is
    written in the same way is the same.
    """
    if by is None:
        return None
    if by == BY_LANE:
        return None if job.lane is None else (job.queue, job.lane)
    try:
        found = _raw.decode(job.args).get(by)
    except msgspec.DecodeError:
        return None  # its arguments are refused when it is run
    return None if found is None else bytes(found)
