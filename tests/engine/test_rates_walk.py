"""Random walks over rates: a model of the contract says which jobs start at each claim.

One lane, in which all have places at once, and jobs of cost 1: which start is then exact. Times are
between two steps of the clock, so it never matters how fast the machine is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.model.job import ClaimedJob
from headrace.model.limits.rate import Rate
from headrace.model.outcome import Completed, Outcome, Released, Retry, Settlement
from tests.conftest import VERSIONS, Servers, store_url
from tests.engine.rate_words import rated
from tests.support.verbs import A_FAILURE, a_worker

STEP = 100.0
WALKS = os.environ.get("HEADRACE_TEST_WALKS")
LIMITS = settings(
    max_examples=int(WALKS or "25"),
    stateful_step_count=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate, *([Phase.shrink] if WALKS else [])],
)


class Model:
    """The jobs that wait, and when all that has started is paid for. Time is in steps."""

    def __init__(self, rate: Rate) -> None:
        self.interval, self.burst = rate.interval / STEP, rate.burst
        self.now = self.tat = 0.0
        self.held_until = -1e9
        self.waiting: dict[str, tuple[int, int]] = {}
        self.starts: list[float] = []

    def start(self, limit: int) -> list[str]:
        """The best that may start now, one after the other."""
        begun: list[str] = []
        for job_id in sorted(self.waiting, key=self.waiting.__getitem__)[:limit]:
            floor = self.held_until + (self.burst - 1) * self.interval
            paid = max(self.tat, floor)
            opens = max(paid - (self.burst - 1) * self.interval, self.held_until)
            if opens > self.now + 1e-9:
                break
            self.tat = max(paid, self.now) + self.interval
            begun.append(job_id)
            self.starts.append(self.now)
        for job_id in begun:
            del self.waiting[job_id]
        return begun


def machine(url: str, rate: Rate, numbers: Iterator[int]) -> type[RuleBasedStateMachine]:
    """A walk in a fresh queue for each example: a store takes servers longer to make."""

    class RatesWalk(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.loop = asyncio.new_event_loop()
            self.clock = Clock()
            self.engine: Engine = open_engine(url, clock=self.clock)
            self.queue = f"q{next(numbers)}"
            self.model = Model(rate)
            self.running: list[ClaimedJob] = []
            self.places: dict[str, tuple[int, int]] = {}
            self.arrivals = 0
            self.call(self.engine.open())
            self.worker = self.call(a_worker(self.engine))

        def call(self, coroutine: Any) -> Any:
            return self.loop.run_until_complete(coroutine)

        def teardown(self) -> None:
            self.call(self.engine.close())
            self.loop.close()

        @rule(count=st.integers(1, 6), priority=st.sampled_from([0, 0, 0, 5]))
        def insert(self, count: int, priority: int) -> None:
            jobs = [rated(rate, priority=priority, queue=self.queue) for _ in range(count)]
            self.call(self.engine.insert(jobs))
            for job in jobs:
                self.arrivals += 1
                self.places[job.id] = self.model.waiting[job.id] = (-priority, self.arrivals)

        @rule(steps=st.sampled_from([0.5, 1, 1, 2, 3, 10]), due=st.booleans())
        def wait(self, steps: float, due: bool) -> None:
            self.clock.advance(steps * STEP)
            self.model.now += steps
            if due:
                self.call(self.engine.promote_due(1_000))

        @rule(limit=st.sampled_from([1, 2, 50]))
        def claim(self, limit: int) -> None:
            answer = self.call(
                self.engine.exchange([], worker_id=self.worker, queues=[self.queue], limit=limit)
            )
            assert [job.id for job in answer.jobs] == self.model.start(limit)
            self.running += answer.jobs

        @rule(kind=st.sampled_from(["completed", "retry", "released"]), hold=st.integers(0, 4))
        def settle(self, kind: str, hold: int) -> None:
            if not self.running:
                return
            job = self.running.pop(0)
            # Mostly none.
            seconds = hold * STEP if hold > 2 and kind == "retry" else 0.0
            outcomes: dict[str, Outcome] = {
                "completed": Completed(b"1"),
                "retry": Retry(A_FAILURE, 0.0, hold_lane=seconds),
                "released": Released(),
            }
            self.call(self.engine.exchange([Settlement(job.id, job.token, outcomes[kind])]))
            if seconds:
                until = self.model.now + seconds / STEP
                self.model.held_until = max(self.model.held_until, until)
            if kind != "completed":
                self.model.waiting[job.id] = self.places[job.id]

        @rule(data=st.data())
        def cancel(self, data: st.DataObject) -> None:
            if self.model.waiting:
                job_id = data.draw(st.sampled_from(sorted(self.model.waiting)))
                assert self.call(self.engine.cancel([job_id])) == {job_id: True}
                del self.model.waiting[job_id]

        @rule()
        def prune(self) -> None:
            self.call(self.engine.prune(older_than=1e9))

        @invariant()
        def all_is_well(self) -> None:
            assert self.call(self.engine.audit()) == []

        @invariant()
        def no_window_has_too_many(self) -> None:
            starts = self.model.starts
            for first in range(len(starts)):
                for last in range(first, len(starts)):
                    length = starts[last] - starts[first]
                    most = length / self.model.interval + self.model.burst
                    assert last - first + 1 <= most + 1e-9

    return RatesWalk


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("rate", [Rate(1, STEP, 1), Rate(2, STEP, 3)], ids=["slow", "burst"])
def test_a_walk(name: str, rate: Rate, servers: Servers, tmp_path: Path) -> None:
    """Each claim starts exactly the jobs that the model starts."""
    numbers = iter(range(1_000_000))
    url = store_url(name, servers, tmp_path)
    run_state_machine_as_test(machine(url, rate, numbers), settings=LIMITS)
