"""What the reference model is made of: jobs, the lanes they stand in, and workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.model.durable.awaited import Awaited
from headrace.model.job import NewJob
from headrace.model.status import State
from tests.engine.transitions import allowed

Place = tuple[str, str]
"""A queue and a lane in it."""

Error = tuple[str | None, str | None]
"""The type of an error, and what it says."""

NO_ERROR: Error = (None, None)


@dataclass
class ModelWorker:
    """A worker: its lease, whether it has been declared dead, and whether it is forgotten."""

    name: str
    lease_until: float
    dead: bool = False
    gone: bool = False
    tasks: tuple[str, ...] | None = None

    def knows(self, task: str) -> bool:
        return self.tasks is None or task in self.tasks


@dataclass
class ModelJob:
    """A job: what was asked for, and where it is now."""

    new: NewJob
    number: int
    state: State
    run_at: float = 0.0
    step: int = 0
    token: int = 0
    attempt: int = 0
    pinned: bool = False
    reserved: bool = False
    worker: str | None = None
    cancel_reason: str | None = None
    error: Error = NO_ERROR
    progress: float = 0.0
    finished_at: float = 0.0
    entries: dict[tuple[str, str], tuple[bytes, int]] = field(default_factory=dict)
    awaits: tuple[Awaited, ...] = ()
    # By when it has to start, as long as it has not; and the step in which it was stored.
    expires_at: float | None = None
    stored_in: int = 0
    # Of one that was woken after its time had come: that time. It may be shown as well.
    overdue_since: float | None = None

    @property
    def place(self) -> Place | None:
        return None if self.new.lane is None else (self.new.queue, self.new.lane)

    @property
    def order(self) -> tuple[int, int]:
        """Higher priority first, then the order of arrival."""
        return (-self.new.priority, self.number)

    @property
    def holds_place(self) -> bool:
        return self.state in (State.READY, State.RUNNING) or self.pinned

    @property
    def unstarted(self) -> bool:
        idle = self.state in (State.SCHEDULED, State.WAITING, State.READY)
        return idle and self.attempt == 0

    def move(self, state: State) -> None:
        assert allowed(self.state, state), f"{self.state.name} -> {state.name}"
        self.state, self.reserved = state, False
        if state is not State.SCHEDULED:
            self.awaits = ()


class Lines:
    """Jobs and lanes: who has a place, who waits, who is next."""

    def __init__(self) -> None:
        self.jobs: dict[str, ModelJob] = {}
        self.widths: dict[Place, int] = {}
        self.now = 0.0
        self.step = 0
        self._arrivals = 0

    def in_state(self, *states: State) -> list[ModelJob]:
        """Jobs in these states, by priority, then arrival."""
        found = (job for job in self.jobs.values() if job.state in states)
        return sorted(found, key=lambda job: job.order)

    def finished(self) -> list[ModelJob]:
        """Jobs that are over."""
        return [job for job in self.jobs.values() if job.state.status.final]

    def holders(self, place: Place) -> list[ModelJob]:
        """Who has a place in a lane."""
        return [job for job in self.jobs.values() if job.place == place and job.holds_place]

    def waiting(self, place: Place) -> list[ModelJob]:
        """Who waits in a lane, the best first."""
        return [job for job in self.in_state(State.WAITING) if job.place == place]

    def arrive(self) -> int:
        """The next number of arrival."""
        self._arrivals += 1
        return self._arrivals

    def set_width(self, job: ModelJob, *, new: bool) -> None:
        """A job comes into its lane: a new one sets the width, as does one that finds it empty."""
        place = job.place
        if place is None or job.pinned:
            return
        if new or not (self.holders(place) or self.waiting(place)):
            self.widths[place] = job.new.width

    def make_pending(self, job: ModelJob, *, new: bool = False) -> None:
        """Ready, unless it has to wait for a place in its lane (`arrange` gives that)."""
        self.set_width(job, new=new)
        free_to_run = job.place is None or job.pinned
        job.move(State.READY if free_to_run else State.WAITING)

    def finish(self, job: ModelJob, state: State, error: Error = NO_ERROR) -> None:
        """The job is over and has no place any more."""
        job.move(state)
        job.error, job.pinned, job.step, job.finished_at = error, False, self.step, self.now
        job.expires_at = None

    def arrange(self, jobs: Iterable[ModelJob]) -> None:
        """Give places in the lanes of these jobs: nobody waits while one is free, and nobody
        waits behind a ready job that he beats, unless that one is pinned to its place.
        """
        for place in {job.place for job in jobs if job.place is not None}:
            width = self.widths.get(place, 0)
            while waiting := self.waiting(place):
                best, holders = waiting[0], self.holders(place)
                if len(holders) < width:
                    best.move(State.READY)
                    continue
                heads = [job for job in holders if job.state is State.READY and not job.pinned]
                worst = max(heads, key=lambda job: job.order, default=best)
                if worst.order <= best.order:
                    break
                worst.move(State.WAITING)


class Workforce(Lines):
    """Workers and their leases."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: dict[str, ModelWorker] = {}

    def register(
        self, worker_id: str, name: str, lease: float, tasks: tuple[str, ...] | None = None
    ) -> None:
        for worker in self.workers.values():
            worker.dead = worker.dead or worker.name == name
        self.workers[worker_id] = ModelWorker(name, self.now + lease, tasks=tasks)

    def retire(self, worker_id: str) -> None:
        worker = self.workers[worker_id]
        worker.dead = True
        worker.gone = worker.gone or not self.held(worker_id)

    def renew(self, worker_id: str, lease: float) -> bool:
        worker = self.workers[worker_id]
        worker.dead = not self.alive(worker_id)
        worker.lease_until = self.now + lease
        return not worker.dead

    def alive(self, worker_id: str) -> bool:
        worker = self.workers.get(worker_id)
        return worker is not None and not worker.dead and worker.lease_until > self.now

    def may_claim(self, worker_id: str) -> bool:
        """A lapsed lease alone changes nothing."""
        worker = self.workers.get(worker_id)
        return worker is not None and not worker.dead

    def held(self, worker_id: str) -> set[str]:
        running = self.in_state(State.RUNNING)
        return {job.new.id for job in running if job.worker == worker_id}

    def lost(self) -> set[str]:
        """Declare workers with a lapsed lease dead; answers the jobs that dead workers hold."""
        for worker_id, worker in self.workers.items():
            worker.dead = not self.alive(worker_id)
        running = self.in_state(State.RUNNING)
        return {job.new.id for job in running if not self.alive(job.worker or "")}
