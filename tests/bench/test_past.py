"""The scenario of a long past, at a small size."""

from __future__ import annotations

import asyncio

from bench.bars import verdicts
from bench.scenarios.past import DAY_SECONDS, left
from bench.scenarios.past_program import Past, build, later
from bench.scenarios.registry import SCENARIOS
from bench.scenarios.stage import Stage

import headrace

SMALL = Past(lanes=1_000, queues=100, tasks=10, workers=10, rounds=2)
WHATS = ("rate", "idle latency, p50", "idle latency, p99")


def test_every_job_belongs_to_one_worker_and_every_queue_to_one_round() -> None:
    past = Past(lanes=1_000_000, queues=100_000, tasks=10_000, workers=10_000, rounds=100)
    seen = 0
    for round_ in range(past.rounds):
        for _, jobs in past.crews(round_):
            assert jobs.start == seen
            seen = jobs.stop
        assert past.queue(seen) != past.queue(seen - 1)
    assert seen == 1_000_000
    assert len({past.queue(number) for number in range(past.lanes)}) == past.queues
    assert len({past.task(number) for number in range(past.lanes)}) == past.tasks


async def test_a_past_is_built_by_the_verbs_and_goes_away(store: str) -> None:
    app = headrace.App(store)
    await build(app, SMALL)
    found = await asyncio.to_thread(left, store)
    counts = {name.rstrip("s"): count for name, count in found.items()}
    # History and lanes are gone; queues and dead workers can be looked at for a day.
    assert counts["queue"] == SMALL.queues
    assert counts["worker"] == SMALL.workers / 2
    assert not counts.keys() & {"job", "history", "finished", "lane", "place", "id"}
    app = headrace.App(store)
    async with app:
        assert await app.engine.audit() == []
    await later(app, DAY_SECONDS)
    # On Redis this is the version of the schema and the like.
    assert set(await asyncio.to_thread(left, store)) <= {"meta"}


def test_both_stores_are_measured_and_judged() -> None:
    stage = Stage("sqlite", scale=1_000)
    try:
        found = list(SCENARIOS["past"](stage))
    finally:
        stage.close()
    cases = [f"{when}: {what}" for when in ("the same day", "a day later") for what in WHATS]
    assert [each.case for each in found] == cases
    assert [each.met is None for each in found] == [False] * len(cases)
    assert all(each.value and each.reference for each in found)
    assert "queue 100" in found[0].note
    assert "queue" not in found[3].note
    told = list(verdicts([], found))
    assert told[1].measured.endswith(" ms)")
