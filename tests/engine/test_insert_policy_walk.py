"""Random walks over inserts by policy: a model of the contract says which jobs there must be, in
which state, with whose arguments, and who has which key.

All jobs have the same priority, and what is due is moved on before and after each insert: what the
contract leaves open does not come about.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from headrace.engine.open import open_engine
from headrace.model.ids import new_id
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import Inserted, JobFilter, NewJob, PolicyInserted
from headrace.model.outcome import Completed, Outcome, Released, Retry, Settlement
from headrace.model.status import State
from headrace.model.worker import WorkerInfo
from tests.conftest import VERSIONS, Servers, store_url
from tests.engine.reference import Reference
from tests.engine.reference_parts import ModelJob
from tests.engine.side_by_side import SideBySide, Stores
from tests.support.verbs import A_FAILURE

STEP = 100.0
LEASE = 1e6
WALKS = os.environ.get("HEADRACE_TEST_WALKS")
LIMITS = settings(
    max_examples=int(WALKS or "30"),
    stateful_step_count=30,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate, *([Phase.shrink] if WALKS else [])],
)

# Times are between two steps of the clock: it never matters how fast the machine is.
POLICIES = [
    InsertPolicy(on_duplicate="replace"),
    InsertPolicy(on_duplicate="replace"),
    InsertPolicy(on_duplicate="debounce"),
    InsertPolicy(on_duplicate="debounce", max_wait=0.5 * STEP),
    InsertPolicy(window=1.5 * STEP),
    InsertPolicy(window=0.5 * STEP, when_full="refuse"),
    InsertPolicy(when_full="refuse"),
    InsertPolicy(when_full="replace"),
    InsertPolicy(when_full="cancel_running"),
]
wanted = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(["a", "a", "a", "a", "b"]),
        "lane": st.sampled_from(["x", "x", None]),
        "width": st.sampled_from([1, 1, 2]),
        "key": st.sampled_from([None, "k1", "k1", "k1", "k2"]),
        "delay": st.sampled_from([0.0, 0.0, 0.0, STEP, 2 * STEP]),
        "expires_in": st.sampled_from([None, None, 0.5 * STEP, 2.5 * STEP]),
        "hold": st.booleans(),
    }
)
outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    [Completed(b"1"), Released(), Retry(A_FAILURE, 0), Retry(A_FAILURE, STEP)]
)

calls = st.tuples(wanted, st.sampled_from(POLICIES), st.none() | outcomes)


class PolicyReference(Reference):
    """The reference model, with inserts by policy."""

    def __init__(self) -> None:
        super().__init__()
        self.stored_at: dict[str, float] = {}

    def _store(self, jobs: Any) -> list[Inserted]:
        answers = super()._store(jobs)
        self.stored_at.update({each.id: self.now for each in answers if each.created})
        return answers

    def insert_by_policy(self, new: NewJob) -> PolicyInserted:
        policy = new.policy
        assert policy is not None
        if new.id in self.jobs:
            return PolicyInserted(Inserted(new.id, False))
        ended: dict[str, bool] = {}
        holder = self.jobs.get(self.keys.get((new.task, new.key or ""), ""))
        if holder is not None:
            age = self.now - self.stored_at[holder.new.id]
            if policy.on_duplicate == "return":
                if policy.window is None or age < policy.window:
                    return PolicyInserted(Inserted(holder.new.id, False))
            elif holder.token == 0 and holder not in self.finished():
                alike = (holder.new.queue, holder.new.lane) == (new.queue, new.lane)
                if policy.on_duplicate == "debounce" and alike:
                    self._debounce(holder, new)
                    return PolicyInserted(Inserted(holder.new.id, False))
                ended = self.cancel([holder.new.id], replaced_by(new.id))
        if policy.when_full != "wait" and self._would_wait(new):
            if policy.when_full == "refuse":
                return PolicyInserted(None)
            place = (new.queue, new.lane or "")
            others = self.waiting(place)
            if policy.when_full == "cancel_running":
                others += self.holders(place)
            ended = self.cancel([job.new.id for job in others], replaced_by(new.id))
        self._store_anew(new)
        return PolicyInserted(
            Inserted(new.id, True),
            tuple(each for each, over in ended.items() if over),
            tuple(each for each, over in ended.items() if not over),
        )

    def _store_anew(self, new: NewJob) -> None:
        """Whoever has the key loses it."""
        self.keys.pop((new.task, new.key or ""), None)
        self.insert([new])

    def _would_wait(self, new: NewJob) -> bool:
        trial = copy.deepcopy(self)
        trial._store_anew(new)
        return trial.jobs[new.id].state is State.WAITING

    def _debounce(self, job: ModelJob, new: NewJob) -> None:
        assert new.policy is not None
        self.step += 1
        job.new = msgspec.structs.replace(job.new, args=new.args, meta=new.meta)
        job.expires_at = None if new.expires_in is None else self.now + new.expires_in
        job.stored_in = self.step
        if job.state is State.SCHEDULED:
            job.run_at = self.now + new.delay
            if new.policy.max_wait is not None:
                latest = self.stored_at[job.new.id] + new.policy.max_wait
                job.run_at = min(job.run_at, latest)


class PolicyWalk(SideBySide):
    """Inserts by policy among all that happens to jobs."""

    model: PolicyReference

    def __init__(self) -> None:
        super().__init__()
        self.model = PolicyReference()
        worker = new_id()
        info = WorkerInfo(id=worker, name="one", host="here", pid=1, version="0")
        self.run(self.engine.register(info, LEASE))
        self.model.register(worker, "one", LEASE)

    def request(self, fields: dict[str, Any]) -> NewJob:
        job_id = self.new_id()
        number = b"%d" % self.made
        meta = None if self.made % 3 else b'{"m":%s}' % number
        return NewJob(id=job_id, task="work", args=b'{"n":%s}' % number, meta=meta, **fields)

    @rule(calls=st.lists(calls, min_size=1, max_size=4), again=st.booleans())
    def insert_by_policy(
        self, calls: list[tuple[dict[str, Any], InsertPolicy, Outcome | None]], again: bool
    ) -> None:
        """Some jobs, and between them a worker that claims one, and may settle it."""
        for fields, policy, outcome in calls:
            job = self.request(fields)
            job.policy = policy
            self.put(job)
            if outcome is not None:
                for claimed in self.exchange([], 0, None, 1):
                    self.settle_both([Settlement(claimed.id, claimed.token, outcome)])
            elif again:
                self.exchange([], 0, None, 1)
        self.put(job)

    def put(self, job: NewJob) -> None:
        """Insert a job on both sides."""
        self.due()
        running = self.model.in_state(State.RUNNING)
        asked = {each.new.id for each in running if each.cancel_reason is not None}
        answer = self.run(self.engine.insert_by_policy(job))
        expected = self.model.insert_by_policy(job)
        assert answer.inserted == expected.inserted
        assert sorted(answer.cancelled) == sorted(expected.cancelled)
        # Whether one that was asked to stop before is named again is open.
        assert set(answer.stopping) - asked == set(expected.stopping) - asked
        assert set(answer.stopping) <= set(expected.stopping)
        self.due()

    @rule(fields=wanted)
    def insert(self, fields: dict[str, Any]) -> None:
        self.store([self.request(fields)])

    @rule(limit=st.integers(1, 3), late=st.booleans())
    def claim(self, limit: int, late: bool) -> None:
        if late:
            self.time_passes(1)
        self.exchange([], 0, None, limit)

    @rule(number=st.integers(0, 5), outcome=outcomes)
    def settle(self, number: int, outcome: Outcome) -> None:
        job = self.pick(number, State.RUNNING)
        if job is not None:
            self.settle_both([Settlement(job.new.id, job.token, outcome)])

    @rule(steps=st.integers(1, 2))
    def time_passes(self, steps: int) -> None:
        self.engine.clock.advance(steps * STEP)
        self.model.now += steps * STEP

    @rule()
    def due(self) -> None:
        """Whatever is due is moved on; whether an insert has done that already is open."""
        self.run(self.engine.promote_due(100))
        scheduled = self.model.in_state(State.SCHEDULED)
        ids = {job.new.id for job in scheduled if job.run_at <= self.model.now}
        self.model.due(100, ids)

    @rule()
    def expire(self) -> None:
        answer = self.run(self.engine.expire(100))
        assert set(answer.ids) == set(self.model.late())
        self.model.expire(answer.ids)

    @rule(number=st.integers(0, 5))
    def rerun(self, number: int) -> None:
        """A job whose key went to another does not take it back."""
        finished = sorted(job.new.id for job in self.model.finished())
        if finished:
            job_id = finished[number % len(finished)]
            assert self.run(self.engine.rerun([job_id])) == self.model.rerun([job_id])

    @rule()
    def prune(self) -> None:
        """A job that goes takes its key with it only if it has it."""
        finished = {job.new.id for job in self.model.finished()}
        assert self.run(self.engine.prune(keep=0)) == len(finished)
        self.model.prune(None, 0, 1_000, finished)

    @invariant()
    def agrees_on_arguments(self) -> None:
        seen = self.run(self.engine.get(list(self.model.jobs)))
        assert {job.id: (job.args_json, job.meta_json, job.key) for job in seen} == {
            job_id: (job.new.args, job.new.meta, job.new.key)
            for job_id, job in self.model.jobs.items()
        }

    @invariant()
    def agrees_on_keys(self) -> None:
        for key in ("k1", "k2"):
            listed = self.run(self.engine.list_jobs(JobFilter(key=key))).jobs
            owner = self.model.keys.get(("work", key))
            assert [job.id for job in listed] == ([] if owner is None else [owner])

    def finish_everything(self) -> None:
        for _ in range(3 + 2 * len(self.model.jobs)):
            self.time_passes(2)
            self.due()
            self.expire()
            jobs = self.exchange([], 0, None, 100)
            held = [(job.new.id, job.token) for job in self.model.in_state(State.RUNNING)]
            assert {job.id for job in jobs} <= {job_id for job_id, _ in held}
            self.settle_both([Settlement(*each, Completed()) for each in held])
            if len(self.model.finished()) == len(self.model.jobs):
                break
        self.agrees_on_every_job()
        assert len(self.model.finished()) == len(self.model.jobs), "a job is stuck"


@pytest.mark.parametrize("name", VERSIONS)
def test_every_walk_agrees_with_the_model(name: str, servers: Servers, tmp_path: Path) -> None:
    class WalkHere(PolicyWalk):
        stores = Stores(lambda: open_engine(store_url(name, servers, tmp_path)))

    with WalkHere.stores:
        run_state_machine_as_test(WalkHere, settings=LIMITS)
