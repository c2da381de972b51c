"""How fast queues fill and empty, as it is told from samples and counts by minute."""

from __future__ import annotations

import pytest

from headrace.monitor.series.flow import MINUTES, RECENT, QueueFlow, flows
from headrace.monitor.series.records import MINUTE, Counts, Depth
from headrace.telemetry import Telemetry

END = 1_000 * MINUTE.seconds


def minute(ready: int | None, *, done: int = 0, retried: int = 0, scheduled: int = 0) -> Counts:
    """A minute of queue mail: how many were ready at its beginning, and what was done in it."""
    counted = Telemetry()
    of = counted.of("send", "mail")
    of.completed = done
    for _ in range(retried):
        of.count("retry")
    if ready is None:
        return Counts(attempts=counted)
    depth = [ready, 0, scheduled, 0]
    return Counts(attempts=counted, samples=1, depths={"mail": Depth(depth, depth)})


def flow(*minutes: Counts) -> QueueFlow:
    """The flow when these were the last minutes."""
    begin = END - len(minutes) * MINUTE.seconds
    by_minute = {begin + n * MINUTE.seconds: each for n, each in enumerate(minutes)}
    return flows(by_minute, END)["mail"]


def test_what_comes_in_is_what_went_out_and_what_is_left() -> None:
    # 100 leave in each minute, and 40 fewer are there after it: 60 have come.
    found = flow(*(minute(1_000 - 40 * n, done=100) for n in range(10)))
    assert (found.in_per_minute, found.out_per_minute, found.shrinks) == (60, 100, 40)
    assert found.drain_words(480) == "about 12 min"
    assert found.pending[-1] == 640
    assert len(found.pending) == MINUTES
    assert found.pending[0] is None


def test_attempts_that_are_tried_again_leave_nothing() -> None:
    found = flow(*(minute(100, retried=50) for _ in range(10)))
    assert (found.in_per_minute, found.out_per_minute) == (0, 0)


def test_jobs_that_are_scheduled_came_in_as_well() -> None:
    found = flow(*(minute(0, scheduled=10 * n) for n in range(10)))
    assert found.in_per_minute == 10
    assert found.shrinks == 0


@pytest.mark.parametrize(
    ("change", "pending", "words"),
    [
        (0, 0, "nothing waits"),
        (0, 100, "not shrinking"),
        (-1, 100_000, "not shrinking"),
        (10, 1_000, "growing"),
        (-60, 30, "about 30 s"),
        (-10, 6_000, "about 10 h"),
        (-1, 45, "about 45 min"),
        (-10, 60_000, "about 4 d"),
        (-100, 1_000_000, "not shrinking"),
        (-1_000, 50_000, "about 50 min"),
        (-2_000, 900_000, "about 8 h"),
    ],
)
def test_when_it_will_be_done_is_said_in_words(change: int, pending: int, words: str) -> None:
    found = flow(*(minute(50_000 + change * n) for n in range(10)))
    assert found.drain_words(pending) == words


def test_nothing_is_said_before_there_are_two_samples() -> None:
    for minutes in ((minute(None, done=50),), (minute(None, done=50), minute(10))):
        found = flow(*minutes)
        assert found.in_per_minute is None
        assert found.out_per_minute == 50 / RECENT
        assert found.drain_words(10) == "not known yet"
    assert QueueFlow().drain_words(1) == "not known yet"
