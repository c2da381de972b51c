"""An engine and the reference model side by side: what they know, and that they agree."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Self, TypeVar

import pytest
from hypothesis import note as tell
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.engine.base import Engine, LeaseKeeper
from headrace.errors import RecordConflict
from headrace.model.durable.writes import Note
from headrace.model.job import ClaimedJob, Job, NewJob
from headrace.model.outcome import Outcome, Settlement
from headrace.model.status import State
from headrace.model.views import RecordChange
from tests.engine.reference import Reference
from tests.engine.reference_parts import ModelJob
from tests.engine.reference_waits import PRUNED_ARTIFACTS

T = TypeVar("T")

Seen = tuple[Any, ...]
# Far more than a walk takes, and less than the steps in which its time moves.
MOMENT = 50.0

WriteClaim = Literal["good", "old token", "new token", "not running"]
"""With what right an attempt writes: only the first may."""


class Stores:
    """Lends an empty store to each walk: the one before, where it was left empty, or a new one."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self.runner = asyncio.Runner()
        self.lease_thread = ThreadPoolExecutor(1)
        self._make = make
        self._kept: Engine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept is not None:
            self.discard(self._kept)
        self.lease_thread.shutdown()
        self.runner.close()

    def borrow(self) -> Engine:
        """An engine on an empty store."""
        engine, self._kept = self._kept, None
        if engine is None:
            engine = self._make()
            self.runner.run(engine.open())
        return engine

    def give_back(self, engine: Engine) -> None:
        """Keep an engine whose store is empty again."""
        self._kept = engine

    def discard(self, engine: Engine) -> None:
        """Close an engine whose store nobody can use any more."""
        self.runner.run(engine.close())


def seen_of(job: Job) -> Seen:
    """What of a job has to be as in the model. It has a start as long as it has a worker."""
    return (
        job.state.name,
        job.attempt,
        job.token,
        job.progress,
        job.worker,
        job.started_at is not None,
        job.error_type,
        job.error,
        job.cancel_requested,
        job.parent,
        job.group,
        job.awaits,
        job.expires_at is not None,
    )


class SideBySide(RuleBasedStateMachine):
    """An engine and the model, side by side."""

    stores: Stores

    def __init__(self) -> None:
        super().__init__()
        self.keepers: dict[str, LeaseKeeper] = {}
        self.engine = self.stores.borrow()
        self.model = Reference()
        self.started_at = self.engine.clock.now()
        self.made = 0

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        return self.stores.runner.run(verb)

    def on_lease_thread(self, function: Callable[[], T]) -> T:
        return self.stores.lease_thread.submit(function).result()

    def finish_everything(self) -> None:
        """Walk on until every job has come to its end."""
        raise NotImplementedError

    def teardown(self) -> None:
        emptied = False
        try:
            self.finish_everything()
            self.forget_everything()
            emptied = True
        finally:
            for keeper in self.keepers.values():
                self.on_lease_thread(keeper.close)
            (self.stores.give_back if emptied else self.stores.discard)(self.engine)

    def forget_everything(self) -> None:
        """Prune and retire all: of a store that was used nothing is left."""
        assert self.run(self.engine.prune(keep=0)) == len(self.model.jobs)
        assert self.run(self.engine.get(list(self.model.jobs))) == []
        assert self.run(self.engine.expire(1)).next_in is None
        for worker in self.model.workers:
            self.run(self.engine.retire(worker))
        for kind in ("cron", PRUNED_ARTIFACTS):
            for record in self.run(self.engine.record_list(kind)):
                assert self.run(self.engine.record_delete(kind, record.key))

    # -- verbs on both sides ---------------------------------------------------------------------

    def store(self, jobs: list[NewJob], record: RecordChange | None = None) -> None:
        tell(f"insert {[job.id[-3:] for job in jobs]}")
        try:
            expected = self.model.insert(jobs, record)
        except RecordConflict:
            with pytest.raises(RecordConflict):
                self.run(self.engine.insert(jobs, record=record))
        else:
            assert self.run(self.engine.insert(jobs, record=record)) == expected

    def exchange(
        self,
        settlements: list[Settlement],
        number: int,
        queues: list[str] | None,
        limit: int,
    ) -> list[ClaimedJob]:
        worker = self.worker(number)
        answer = self.run(
            self.engine.exchange(settlements, worker_id=worker, queues=queues, limit=limit)
        )
        tell(f"claimed {[job.id[-3:] for job in answer.jobs]}")
        assert set(answer.refused) == self.model.settle(settlements)
        if late := self.model.late():
            # Who claims may cancel them before; if not, they are passed over.
            seen = self.run(self.engine.get(list(late)))
            self.model.expire([job.id for job in seen if job.status.final])
        expected = self.model.claim(worker, queues, limit)
        assert [
            (job.id[-3:], job.token, job.attempt, job.lane, job.parent, job.cancel_requested)
            for job in answer.jobs
        ] == [
            (job.new.id[-3:], job.token, job.attempt, job.new.lane, job.new.parent, False)
            for job in expected
        ]
        return answer.jobs

    def settle_both(self, settlements: list[Settlement]) -> None:
        answer = self.run(self.engine.exchange(settlements))
        assert set(answer.refused) == self.model.settle(settlements)
        assert answer.jobs == []

    def note_both(self, notes: list[Note]) -> None:
        assert set(self.run(self.engine.write_progress(notes))) == self.model.note(notes)

    # -- what the walk knows --------------------------------------------------------------------

    def new_id(self) -> str:
        """Ids that do not sort by arrival, and are the same in each run."""
        self.made += 1
        return f"{self.made * 7919 % 10007:08x}-0000-7000-8000-{self.made:012d}"

    def pick(self, number: int, *states: State) -> ModelJob | None:
        jobs = self.model.in_state(*states)
        return jobs[number % len(jobs)] if jobs else None

    def worker(self, number: int) -> str:
        """A worker: dead, alive, or lapsed without anybody having noticed."""
        known = list(self.model.workers)
        return known[-1 - number % len(known)] if known else self.new_id()

    def claim_to_write(self, number: int, claim: WriteClaim) -> tuple[str, int] | None:
        """A job and the token under which somebody believes to own it."""
        states = [State.RUNNING] if claim != "not running" else set(State) - {State.RUNNING}
        job = self.pick(number, *states)
        if job is None:
            return None
        return job.new.id, job.token + {"old token": -1, "new token": 1}.get(claim, 0)

    def settlements(
        self, choices: Sequence[tuple[int, Outcome, WriteClaim]], follow: Sequence[NewJob] = ()
    ) -> list[Settlement]:
        """Outcomes of running jobs, and some that have to be refused. Each has some of `follow`,
        and one may be that of two.
        """
        made: dict[str, Settlement] = {}
        for number, outcome, claim in choices:
            if (claimed := self.claim_to_write(number, claim)) is not None:
                first = len(made) % len(follow) if follow else 0
                some = tuple(follow[first : first + 2])
                made[claimed[0]] = Settlement(*claimed, outcome, follow=some)
        return list(made.values())

    @rule()
    def look(self) -> None:
        """What people see agrees as well: queues, workers, entries, records."""
        self.look_at_queues()
        workers = self.run(self.engine.workers())
        kept = [each for each, worker in self.model.workers.items() if not worker.gone]
        assert sorted(each.id for each in workers) == sorted(kept)
        alive = {each.id for each in workers if each.alive}
        assert alive == {each for each in self.model.workers if self.model.alive(each)}
        for worker in alive:
            held = self.run(self.engine.claimed_by(worker))
            assert {job.id for job in held} == self.model.held(worker)
        for job in self.model.jobs.values():
            self.look_at_entries(job)

        self.look_at_records()

    def look_at_entries(self, job: ModelJob) -> None:
        entries = self.run(self.engine.entries(job.new.id))
        assert [((each.kind, each.name), (bytes(each.body), each.token)) for each in entries] == [
            *job.entries.items()
        ]

    def look_at_records(self) -> None:
        for (kind, key), version in self.model.records.items():
            record = self.run(self.engine.record_get(kind, key))
            assert record is not None
            assert record.version == version

    def look_at_queues(self) -> None:
        for queue in self.run(self.engine.queues()):
            jobs = [job.state for job in self.model.jobs.values() if job.new.queue == queue.name]
            counts = (queue.scheduled, queue.waiting, queue.ready, queue.running)
            expected = (State.SCHEDULED, State.WAITING, State.READY, State.RUNNING)
            assert counts == tuple(jobs.count(state) for state in expected)
            assert queue.paused == (queue.name in self.model.paused)
            reserved = Counter(
                job.new.task
                for job in self.model.jobs.values()
                if job.reserved and job.new.queue == queue.name
            )
            assert dict(queue.reserved) == dict(reserved)

    # -- what holds at any moment --------------------------------------------------------------

    @invariant()
    def agrees_on_every_job(self) -> None:
        jobs = self.model.jobs
        seen = self.run(self.engine.get(list(jobs)))
        assert {job.id[-3:]: seen_of(job) for job in seen} == {
            job_id[-3:]: self.expected_of(job) for job_id, job in jobs.items()
        }
        for job in seen:
            due = job.run_at.timestamp() - self.started_at
            expected = jobs[job.id]
            times = (expected.run_at, expected.overdue_since)
            assert any(abs(due - each) < MOMENT for each in times if each is not None)
            if job.expires_at is not None:
                by = job.expires_at.timestamp() - self.started_at
                assert abs(by - (expected.expires_at or 0.0)) < MOMENT

    def expected_of(self, job: ModelJob) -> Seen:
        worker = None if job.worker is None else self.model.workers[job.worker].name
        return (
            job.state.name,
            job.attempt,
            job.token,
            job.progress,
            worker,
            worker is not None,
            *job.error,
            job.cancel_reason is not None,
            job.new.parent,
            job.new.group,
            job.awaits,
            job.expires_at is not None and job.unstarted,
        )

    @invariant()
    def agrees_on_every_lane(self) -> None:
        shown = {(lane.queue, lane.lane): lane for lane in self.run(self.engine.lanes())}
        for place in {job.place for job in self.model.jobs.values() if job.place is not None}:
            holders = sorted(self.model.holders(place), key=lambda job: job.order)
            ids = tuple(job.new.id for job in holders)
            waiting = len(self.model.waiting(place))
            lane = shown.pop(place, None)
            if lane is None:
                assert (ids, waiting) == ((), 0)
            else:
                assert (lane.holders, lane.used, lane.waiting) == (ids, len(ids), waiting)
                assert lane.width == self.model.widths[place]
        assert shown == {}

    @invariant()
    def audits_clean(self) -> None:
        assert self.run(self.engine.audit()) == []
