"""Any run, whatever people and crashes do to it: a step is done once for each time it is asked for.

`HEADRACE_TEST_WORKFLOW_RUNS=500` plays so many runs on each engine instead of a few.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import headrace
from headrace.clock import Clock
from tests.conftest import ENGINES, Servers, store_url
from tests.workflows.model import Action, Model, PlannedStep

RUNS = os.environ.get("HEADRACE_TEST_WORKFLOW_RUNS")
FEW = 7

ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.just(("advance",)),
    st.tuples(st.just("steps"), st.integers(1, 3)),
    st.tuples(st.just("kill"), st.integers(1, 2), st.booleans()),
    st.just(("sweep",)),
    st.tuples(st.just("break"), st.integers(0, 3)),
    st.just(("heal",)),
    st.just(("cancel",)),
    st.just(("retry",)),
    st.tuples(st.just("retry_from"), st.integers(0, 3)),
    st.tuples(st.just("retry_job"), st.integers(0, 20)),
    st.tuples(st.just("bulk"), st.booleans()),
    st.tuples(st.just("everything_at_once"), st.integers(0, 20)),
)


@st.composite
def plans(draw: st.DrawFn) -> list[PlannedStep]:
    """Steps that need some of those before them, some for each of a few items."""
    return [
        PlannedStep(
            needs=draw(st.frozensets(st.integers(0, max(0, index - 1)), max_size=min(2, index))),
            items=draw(st.none() | st.integers(0, 3)),
            runs=draw(st.sampled_from([True, True, True, False])),
            may_fail=draw(st.sampled_from([False, False, True])),
        )
        for index in range(draw(st.integers(1, 4)))
    ]


@pytest.mark.timeout(120 if RUNS is None else 3_600)
@pytest.mark.parametrize("family", ENGINES)
def test_a_step_is_done_at_most_once_for_each_request(
    family: str, servers: Servers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    clock = Clock()
    app = headrace.App(store_url(family, servers, tmp_path), clock=clock, workflows="none")

    @app.task(retries=0)
    async def effect(step: str, item: int) -> None: ...

    async def play(steps: list[PlannedStep], broken: set[int], actions: list[Action]) -> None:
        model = Model(app, clock, steps)
        await model.begin()
        for step in broken:
            await model.act(("break", step))
        await model.act(("advance",))
        for action in actions:
            await model.act(action)
        await model.to_the_end()

    with asyncio.Runner() as runner:
        runner.run(app.open())

        @settings(
            max_examples=FEW if RUNS is None else int(RUNS),
            derandomize=RUNS is None,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(plans(), st.sets(st.integers(0, 3), max_size=2), st.lists(ACTIONS, max_size=8))
        def any_run(steps: list[PlannedStep], broken: set[int], actions: list[Action]) -> None:
            note(f"{steps=}, {broken=}, {actions=}")
            runner.run(play(steps, broken, actions))

        try:
            any_run()
            assert runner.run(app.engine.audit()) == []
        finally:
            runner.run(app.close())
