"""How many jobs to claim ahead, and when to ask again."""

from __future__ import annotations

import pytest

from headrace.orchestrator.claiming import prefetch
from headrace.orchestrator.claiming.prefetch import ClaimAges, PollBackoff, PrefetchLimit


def test_a_new_worker_is_cautious_and_learns() -> None:
    prefetch_limit = PrefetchLimit(10)
    assert prefetch_limit.count() == 0
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    assert prefetch_limit.count() == prefetch.LIMIT
    for _ in range(200):
        prefetch_limit.observe_duration(0.01)
    assert 45 <= prefetch_limit.count() <= 50
    prefetch_limit.observe_duration(10)
    assert prefetch_limit.count() == 0


def test_misjudged_jobs_make_it_cautious_again() -> None:
    prefetch_limit = PrefetchLimit(10)
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    prefetch_limit.reset()
    assert prefetch_limit.count() == 0


def test_large_jobs_are_not_hoarded() -> None:
    prefetch_limit = PrefetchLimit(10)
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    prefetch_limit.observe_size(1_048_576)
    assert prefetch_limit.count() == 32
    for _ in range(10):
        prefetch_limit.observe_size(10)
    assert prefetch_limit.count() == prefetch.LIMIT


def test_arrivals_know_how_long_jobs_have_waited() -> None:
    ages = ClaimAges()
    assert ages.oldest() is None
    ages.add(3, 100.0)
    ages.add(2, 100.5)
    assert (ages.count, ages.oldest()) == (5, 100.0)
    assert ages.overdue(100.9) == 0
    assert ages.overdue(101.1) == 3
    ages.gone += 2
    assert ages.overdue(101.1) == 1
    assert ages.overdue(101.6) == 3
    ages.gone += 1
    assert (ages.count, ages.oldest()) == (2, 100.5)
    ages.gone += 2
    assert ages.oldest() is None
    assert ages.overdue(1_000) == 0


def test_an_idle_worker_looks_less_and_less_often() -> None:
    poll, pauses = PollBackoff(), []
    now = 100.0
    for _ in range(7):
        poll.empty(now, listening=True)
        pauses.append(round(poll.next - now, 3))
        now = poll.next
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    poll.empty(now, listening=False)
    assert poll.next - now == pytest.approx(0.25)
    poll.found(now)
    assert poll.next - now == pytest.approx(0.05)


def test_signals_that_are_for_others_are_worth_less_and_less() -> None:
    poll, now = PollBackoff(), 100.0
    poll.empty(now, listening=True)
    assert poll.ignore_signals_until <= now, "the first signal is always worth a look"
    hushes = []
    for _ in range(8):
        now += 0.001
        poll.empty(now, listening=True)
        hushes.append(round(poll.ignore_signals_until - now, 3))
    assert hushes == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05]
    poll.empty(now + 1, listening=True)
    assert poll.ignore_signals_until <= now + 1
    poll.found(now + 1)
    assert poll.ignore_signals_until == 0
