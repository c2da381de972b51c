"""Random walks over the whole contract: each engine has to do what the reference model does.

After every step the two must agree on what every job shows and on what was answered, and the
engine's own audit must be empty. Times move in whole steps of 100 s, far more than a walk takes,
so that it never matters how fast the machine is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headrace.engine.open import open_engine
from headrace.model.durable.writes import Entry, Note
from headrace.model.ids import new_id
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import State
from headrace.model.worker import WorkerInfo, WorkerStats
from tests.conftest import VERSIONS, Servers, store_url
from tests.engine.side_by_side import Stores, WriteClaim
from tests.engine.walk_families import QUEUES, STEP, WAITS, Families, picks, requests
from tests.support.verbs import A_FAILURE

LEASE = 250.0
# The tasks that workers know; the others know all of them.
KNOWN: dict[str, tuple[str, ...]] = {"two": ("work",), "three": ()}

# Walks and steps of the usual run fit into a minute for all engines. With HEADRACE_TEST_WALKS there
# are more of them, and a failure is made as small as possible, which takes minutes.
WALKS = os.environ.get("HEADRACE_TEST_WALKS")
LIMITS = settings(
    max_examples=int(WALKS or "40"),
    stateful_step_count=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate, *([Phase.shrink] if WALKS else [])],
)

outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Completed(b"1"),
        Released(),
        Reserved(),
        Retry(A_FAILURE, 0),
        Retry(A_FAILURE, STEP),
        Failed(A_FAILURE),
        TimedOut(A_FAILURE),
        Cancelled("enough"),
        Snoozed(0),
        Snoozed(2 * STEP),
        *WAITS,
    ]
)
queue_choices = st.sampled_from([None, None, ["a"], ["b"], ["b", "a"], []])
claims: st.SearchStrategy[WriteClaim] = st.sampled_from(
    ["good", "good", "good", "good", "old token", "new token", "not running"]
)
settling = st.tuples(picks, outcomes, claims)
follows: st.SearchStrategy[list[dict[str, Any]]] = st.just([]) | st.lists(requests, max_size=4)


class Walk(Families):
    """What may happen to a store, in any order."""

    @initialize(wanted=st.lists(requests, min_size=2, max_size=4))
    def begin(self, wanted: list[dict[str, Any]]) -> None:
        for name in ("one", "two"):
            self.register(name)
        self.insert(wanted)

    @rule(wanted=st.lists(requests, min_size=1, max_size=4))
    def insert(self, wanted: list[dict[str, Any]]) -> None:
        self.store([self.request(fields) for fields in wanted])

    @precondition(lambda self: self.model.jobs)
    @rule(number=picks, fields=requests, wanted=requests)
    def repeat_insert(self, number: int, fields: dict[str, Any], wanted: dict[str, Any]) -> None:
        """An id that exists, whatever else is asked with it, and the id of this call again."""
        known = self.pick(number, *State)
        assert known is not None
        new = self.new_id()
        self.store(
            [
                self.request(fields, known.new.id),
                self.request(wanted, new),
                self.request(fields, new),
            ]
        )

    @rule(number=picks, queues=queue_choices, limit=st.integers(0, 6))
    def claim(self, number: int, queues: list[str] | None, limit: int) -> None:
        self.exchange([], number, queues, limit)

    @precondition(lambda self: self.model.jobs)
    @rule(choices=st.lists(settling, min_size=1, max_size=4), wanted=follows)
    def settle(
        self, choices: list[tuple[int, Outcome, WriteClaim]], wanted: list[dict[str, Any]]
    ) -> None:
        follow = [self.request(fields) for fields in wanted]
        self.settle_both(self.settlements(choices, follow))

    @rule(
        name=st.sampled_from(["one", "two"]),
        ends=st.lists(outcomes, min_size=1, max_size=4),
        kept=st.sampled_from([None, "stage", "artifact"]),
        wanted=requests,
        followed=st.booleans(),
    )
    def work(
        self,
        name: str,
        ends: list[Outcome],
        kept: str | None,
        wanted: dict[str, Any],
        followed: bool,
    ) -> None:
        """A worker comes, takes jobs and ends them one way or another."""
        self.register(name)
        jobs = self.exchange([], 0, None, len(ends))
        if kept is not None:
            entries = (Entry(kept, "s1", b"1"),)
            self.note_both([Note(job.id, job.token, entries=entries) for job in jobs])
        ended = [
            Settlement(job.id, job.token, end, follow=(self.request(wanted),) if followed else ())
            for job, end in zip(jobs, ends, strict=False)
        ]
        self.exchange(ended, 0, None, 0)

    @precondition(lambda self: self.model.in_state(State.RUNNING))
    @rule(
        choices=st.lists(settling, min_size=1, max_size=4),
        wanted=follows,
        number=picks,
        queues=queue_choices,
        limit=st.integers(1, 6),
    )
    def settle_and_claim(
        self,
        choices: list[tuple[int, Outcome, WriteClaim]],
        wanted: list[dict[str, Any]],
        number: int,
        queues: list[str] | None,
        limit: int,
    ) -> None:
        follow = [self.request(fields) for fields in wanted]
        self.exchange(self.settlements(choices, follow), number, queues, limit)

    @precondition(lambda self: self.model.jobs)
    @rule(choices=st.lists(st.tuples(picks, claims), max_size=3), progress=st.integers(1, 99))
    def note(self, choices: list[tuple[int, WriteClaim]], progress: int) -> None:
        kind = "artifact" if progress % 4 == 0 else "stage"
        entry = Entry(kind, f"s{progress % 3}", b"%d" % progress)
        notes = {
            claimed[0]: Note(*claimed, "stage", float(progress), None, (entry,))
            for number, claim in choices
            if (claimed := self.claim_to_write(number, claim)) is not None
        }
        self.note_both(list(notes.values()))

    @precondition(lambda self: self.model.jobs)
    @rule(numbers=st.lists(picks, min_size=1, max_size=3), reason=st.sampled_from(["a", "b"]))
    def cancel(self, numbers: list[int], reason: str) -> None:
        ids = {job.new.id for number in numbers if (job := self.pick(number, *State))}
        answer = self.run(self.engine.cancel([*sorted(ids), self.new_id()], reason))
        assert answer == self.model.cancel(sorted(ids), reason)

    @precondition(lambda self: self.model.jobs)
    @rule(numbers=st.lists(picks, min_size=1, max_size=3, unique=True))
    def rerun(self, numbers: list[int]) -> None:
        # Only the order within a lane is promised, so those of one call have the same lane. Whether
        # one that was scheduled sets its width before or after finished ones come back is open.
        jobs = [job for number in numbers if (job := self.pick(number, *State))]
        alike = [(job.place, job.state.status.final) for job in jobs]
        same = [job for job, each in zip(jobs, alike, strict=True) if each == alike[0]]
        ids = list(dict.fromkeys(job.new.id for job in same))
        moved = self.run(self.engine.rerun([*ids, self.new_id()]))
        assert sorted(moved) == sorted(self.model.rerun(ids))

    @rule(steps=st.integers(1, 3))
    def time_passes(self, steps: int) -> None:
        self.engine.clock.advance(steps * STEP)
        self.model.now += steps * STEP

    @precondition(lambda self: self.model.in_state(State.SCHEDULED))
    @rule(limit=st.sampled_from([1, 2, 100]))
    def due(self, limit: int) -> None:
        scheduled = {job.new.id for job in self.model.in_state(State.SCHEDULED)}
        answer = self.run(self.engine.promote_due(limit))
        still = self.run(self.engine.get(sorted(scheduled)))
        moved = scheduled - {job.id for job in still if job.state is State.SCHEDULED}
        assert (answer.moved, len(moved)) == (self.model.due(limit, moved),) * 2
        expected = self.model.next_due()
        if expected is None:
            assert answer.next_in is None
        else:
            assert answer.next_in is not None
            assert expected - STEP / 2 < answer.next_in < expected + STEP / 2

    @rule(limit=st.sampled_from([1, 100]), outcome=outcomes, finish_late=st.booleans())
    def sweep(self, limit: int, outcome: Outcome, finish_late: bool) -> None:
        """Find jobs of dead workers and settle them; a dead worker may settle one before."""
        found = self.run(self.engine.take_lost(limit))
        expected = self.model.lost()
        ids = {each.job.id for each in found}
        assert ids <= expected
        assert len(found) == len(ids) == min(limit, len(expected))
        settlements = [Settlement(each.job.id, each.job.token, outcome) for each in found]
        late = [Settlement(each.job_id, each.token, Completed(b"2")) for each in settlements[:1]]
        for batch in (late, settlements) if finish_late else (settlements, late):
            self.settle_both(batch)

    @rule(name=st.sampled_from(["one", "two", "three"]))
    def register(self, name: str) -> None:
        """Start a worker; one of the same name that runs is replaced."""
        worker = new_id()
        tasks = KNOWN.get(name)
        info = WorkerInfo(id=worker, name=name, host="here", pid=1, version="0", tasks=tasks)
        self.run(self.engine.register(info, LEASE))
        self.model.register(worker, name, LEASE, tasks)

    @rule(number=picks)
    def retire(self, number: int) -> None:
        worker = self.worker(number)
        if worker in self.model.workers:
            self.run(self.engine.retire(worker))
            self.model.retire(worker)

    @precondition(lambda self: self.model.workers)
    @rule(number=picks)
    def renew(self, number: int) -> None:
        workers = list(self.model.workers)
        worker = workers[-1 - number % len(workers)]

        def on_thread() -> tuple[bool, set[str]]:
            if worker not in self.keepers:
                self.keepers[worker] = self.engine.keeper(worker, LEASE)
            answer = self.keepers[worker].renew(WorkerStats())
            return answer.alive, set(answer.cancelled)

        alive = self.model.renew(worker, LEASE)
        asked = {each for each in self.model.held(worker) if self.model.jobs[each].cancel_reason}
        assert self.on_lease_thread(on_thread) == (alive, asked if alive else set())

    @rule(queue=st.sampled_from(QUEUES), paused=st.booleans())
    def pause(self, queue: str, paused: bool) -> None:
        self.run(self.engine.pause(queue, paused))
        (self.model.paused.add if paused else self.model.paused.discard)(queue)

    @precondition(lambda self: self.model.finished())
    @rule(
        older_than=st.sampled_from([None, 50.0, 150.0]),
        keep=st.sampled_from([None, 0, 2]),
        limit=st.sampled_from([1, 2, 100]),
    )
    def prune(self, older_than: float | None, keep: int | None, limit: int) -> None:
        finished = {job.new.id for job in self.model.finished()}
        count = self.run(self.engine.prune(older_than=older_than, keep=keep, limit=limit))
        gone = finished - {job.id for job in self.run(self.engine.get(sorted(finished)))}
        assert count == len(gone)
        assert count in self.model.prune(older_than, keep, limit, gone)
        self.look_at_records()

    def finish_everything(self) -> None:
        """Nothing is stuck: with a living worker and time, every job comes to its end."""
        for queue in QUEUES:
            self.pause(queue, False)
        for _ in range(3 + 2 * len(self.model.jobs)):
            self.time_passes(3)
            self.register("last")
            self.sweep(100, Retry(A_FAILURE, 0), False)
            if self.model.in_state(State.SCHEDULED):
                self.due(100)
            self.expire(100)
            jobs = self.exchange([], 0, None, 100)
            self.exchange([Settlement(job.id, job.token, Completed()) for job in jobs], 0, None, 0)
            if len(self.model.finished()) == len(self.model.jobs):
                break
        self.agrees_on_every_job()
        assert len(self.model.finished()) == len(self.model.jobs), "a job is stuck"


@pytest.mark.parametrize("name", VERSIONS)
def test_every_walk_agrees_with_the_model(name: str, servers: Servers, tmp_path: Path) -> None:
    class WalkHere(Walk):
        stores = Stores(lambda: open_engine(store_url(name, servers, tmp_path)))

    with WalkHere.stores:
        run_state_machine_as_test(WalkHere, settings=LIMITS)
