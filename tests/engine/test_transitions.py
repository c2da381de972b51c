from __future__ import annotations

from headrace.model.status import ACTIVE, FINAL, STATES, State, Status
from tests.engine.transitions import MOVES, allowed


def test_every_state_is_in_the_table() -> None:
    assert set(MOVES) == set(State)
    assert all(MOVES[state] for state in State)


def test_only_a_hand_moves_a_finished_job() -> None:
    for state in State:
        if state.status.final:
            assert set(MOVES[state]) == {State.READY, State.WAITING}
            assert all("by hand" in reason for reason in MOVES[state].values())


def test_only_ready_jobs_are_claimed() -> None:
    assert [state for state in State if allowed(state, State.RUNNING)] == [State.READY]


def test_statuses_cover_all_states() -> None:
    assert {state for states in STATES.values() for state in states} == set(State)
    assert set(Status) == FINAL | ACTIVE
    assert Status.TIMEOUT.final
    assert not Status.SCHEDULED.final
