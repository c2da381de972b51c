"""Outcomes stay in the buffer until they are settled, and a bad one is found."""

from __future__ import annotations

from headrace.model.job import NewJob
from headrace.model.outcome import (
    Completed,
    Failed,
    Outcome,
    Released,
    Reserved,
    Settlement,
)
from headrace.orchestrator.settling import settlements
from headrace.orchestrator.settling.settlements import SettleBuffer


def outcomes(count: int, result: bytes = b"null") -> list[Settlement]:
    return [Settlement(f"job-{n}", 1, Completed(result)) for n in range(count)]


def test_outcomes_stay_until_they_are_sent() -> None:
    buffer = SettleBuffer()
    made = outcomes(3)
    for each in made:
        buffer.add(each)
    batch = buffer.take()
    assert batch == made
    buffer.put_back(batch, may_be_poisoned=False)
    assert list(buffer.pending) == made
    batch = buffer.take()
    assert batch == made
    buffer.sent(batch)
    assert len(buffer) == 0


def test_a_batch_is_bounded_in_number_and_size() -> None:
    buffer = SettleBuffer()
    buffer.pending.extend(outcomes(settlements.BATCH + 5))
    assert [len(buffer.take()), len(buffer.take())] == [settlements.BATCH, 5]
    buffer.pending.extend(outcomes(5, b"x" * (settlements.BATCH_BYTES // 2)))
    assert len(buffer.take()) == 2
    buffer.pending.extend(outcomes(1, b"x" * (settlements.BATCH_BYTES * 2)))
    assert len(buffer.take()) == 2


def test_an_outcome_that_breaks_its_batch_is_found_and_replaced() -> None:
    buffer = SettleBuffer()
    buffer.pending.extend(outcomes(20))
    bad, trips = "job-13", 0
    done: dict[str, type[Outcome]] = {}
    while buffer.pending and trips < 100:
        trips += 1
        batch = buffer.take()
        if any(each.job_id == bad and isinstance(each.outcome, Completed) for each in batch):
            buffer.put_back(batch, may_be_poisoned=True)
        else:
            done |= {each.job_id: type(each.outcome) for each in batch}
            buffer.sent(batch)
    assert done.pop(bad) is Failed
    assert set(done.values()) == {Completed}
    assert len(done) == 19
    assert not buffer.isolating


def test_outcomes_of_jobs_that_never_started_are_found() -> None:
    buffer = SettleBuffer()
    released = Settlement("job-a", 1, Released())
    reserved = Settlement("job-b", 1, Reserved())
    for each in (*outcomes(1), released, reserved):
        buffer.add(each)
    assert buffer.releases() == [released, reserved]
    assert len(buffer) == 3


def test_a_batch_is_bounded_by_the_jobs_that_follow() -> None:
    buffer = SettleBuffer()
    follow = (NewJob(id="x", task="t", args=b"x" * (settlements.BATCH_BYTES // 2)),)
    buffer.pending.extend(Settlement(f"job-{n}", 1, Completed(), follow=follow) for n in range(3))
    assert [len(buffer.take()), len(buffer.take()), len(buffer.take())] == [1, 1, 1]
