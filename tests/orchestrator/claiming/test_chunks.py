"""Claimed jobs that wait to be run together: when a group may start, and what it has room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.job import ClaimedJob
from headrace.orchestrator.claiming import chunks as chunks_module
from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.claiming.prefetch import PATIENCE, PrefetchLimit
from tests.orchestrator.conftest import until
from tests.orchestrator.jobs import a_claimed_job


@dataclass
class Row:
    number: int
    shop: str = "one"


@pytest.fixture
def app(clock: Clock) -> headrace.App:
    """Tasks with chunks, and one without. Nothing is connected."""
    app = headrace.App("sqlite://", clock=clock)

    async def store(chunk: headrace.Chunk[Row]) -> None: ...

    app.task("store", chunk=3, chunk_wait=10)(store)
    app.task("by_shop", chunk=3, chunk_wait=10, chunk_by="shop")(store)
    app.task("by_lane", chunk=3, chunk_wait=10, chunk_by="lane")(store)
    app.task("at_once", chunk=3, chunk_wait=0)(store)
    app.task("large", chunk=50, chunk_wait=10)(store)

    @app.task
    async def alone() -> None: ...

    return app


@pytest.fixture
def chunks(app: headrace.App, clock: Clock) -> ChunkCollector:
    return ChunkCollector(names=app.chunk_tasks, tasks=app.tasks, clock=clock)


numbers: Iterator[int] = count()


def jobs(many: int, task: str = "store", **fields: Any) -> list[ClaimedJob]:
    return [a_claimed_job(id=f"job-{next(numbers)}", task=task, **fields) for _ in range(many)]


def room(chunks: ChunkCollector, room: int = 0) -> tuple[int, bool]:
    return chunks.room(room, PrefetchLimit(10))


async def test_a_group_may_start_when_it_is_full(chunks: ChunkCollector) -> None:
    came = jobs(7)
    assert chunks.collect(came[:2]) == []
    assert not chunks.ready
    chunks.collect(came[2:])
    assert [chunks.take(), chunks.take()] == [came[:3], came[3:6]]
    assert not chunks.ready


async def test_jobs_of_other_tasks_are_handed_back_in_order(chunks: ChunkCollector) -> None:
    first, second = jobs(2, "alone")
    [member] = jobs(1)
    assert chunks.collect([first, member, second]) == [first, second]


async def test_a_group_may_start_when_its_time_is_up(chunks: ChunkCollector, clock: Clock) -> None:
    started: list[list[ClaimedJob]] = []
    chunks.on_ready = lambda: started.append(chunks.take())
    came = jobs(2)
    chunks.collect(came)
    clock.advance(9)
    chunks.collect(jobs(1, "large"))
    assert not chunks.ready
    clock.advance(1.1)
    await until(lambda: started)
    assert started == [came]


async def test_the_time_counts_from_the_first_of_a_group(
    chunks: ChunkCollector, clock: Clock
) -> None:
    came = jobs(2)
    chunks.collect(came[:1])
    clock.advance(6)
    chunks.collect(came[1:])
    assert not chunks.ready
    clock.advance(5)
    chunks.collect([])
    assert chunks.take() == came


async def test_without_a_wait_all_that_came_together_start_together(chunks: ChunkCollector) -> None:
    came = jobs(2, "at_once")
    chunks.collect(came)
    assert chunks.take() == came


async def test_a_group_without_a_slot_goes_on_collecting(chunks: ChunkCollector) -> None:
    came = jobs(4, "at_once")
    chunks.collect(came[:1])
    assert len(chunks.ready) == 1
    chunks.collect(came[1:])
    assert [chunks.take(), chunks.take()] == [came[:3], came[3:]]


async def test_groups_have_an_argument_in_common(chunks: ChunkCollector) -> None:
    ones = jobs(3, "by_shop", args=b'{"number":1,"shop":"a"}')
    others = jobs(2, "by_shop", args=b'{"number":1,"shop":"b"}')
    without = jobs(3, "by_shop", args=b'{"number":1}')
    broken = jobs(1, "by_shop", args=b"[]")
    mixed = [*ones[:1], *others, *without[:1], *broken, *ones[1:], *without[1:]]
    chunks.collect(mixed)
    found = [chunks.take() for _ in range(len(chunks.ready))]
    assert ones in found
    assert not any(set(map(id, others)) & set(map(id, each)) for each in found)


async def test_groups_have_a_lane_in_common(chunks: ChunkCollector) -> None:
    first = jobs(2, "by_lane", lane="a")
    other_queue = jobs(1, "by_lane", lane="a", queue="other")
    second = jobs(2, "by_lane", lane="b")
    chunks.collect([*first, *other_queue, *second])
    assert not chunks.ready
    last = jobs(1, "by_lane", lane="a")
    chunks.collect(last)
    assert chunks.take() == [*first, *last]


async def test_jobs_with_another_time_limit_are_a_group_of_their_own(
    chunks: ChunkCollector,
) -> None:
    short = jobs(2, timeout=1.0)
    chunks.collect([*short, *jobs(1)])
    assert not chunks.ready


async def test_a_group_counts_as_one_job_and_has_room(chunks: ChunkCollector) -> None:
    assert room(chunks, 10) == (10, False)
    chunks.collect(jobs(10, "large"))
    # Ten jobs, of which one counts, and forty more fit in.
    assert room(chunks, 10 - 10) == (9 + 40, True)


async def test_a_chunk_that_runs_counts_as_one_job_until_it_has_ended(
    chunks: ChunkCollector,
) -> None:
    chunks.collect(jobs(3))
    chunks.take()
    claimed = 3
    assert room(chunks, 10 - claimed) == (9, False)
    for _ in range(3):
        chunks.member_over()
        claimed -= 1
        # Its slot is taken, however many of its jobs have ended.
        assert room(chunks, 10 - claimed) == (9, False)
    chunks.call_over()
    assert room(chunks, 10) == (10, False)


async def test_what_fills_no_group_is_asked_for_less_and_less(chunks: ChunkCollector) -> None:
    chunks.collect(jobs(2, "large"))
    asked = []
    for _ in range(8):
        extra, filling = room(chunks, -1)
        assert filling
        asked.append(extra)
        chunks.collect(jobs(10, "alone"))
    assert asked[0] == 48
    assert asked[1] == 24
    # But never for nothing: the next may be one.
    assert asked[-1] == 1
    room(chunks, -1)
    chunks.collect(jobs(1, "large"))
    assert room(chunks, -2)[0] > 20


async def test_no_more_is_asked_for_while_too_much_is_claimed(chunks: ChunkCollector) -> None:
    chunks.collect(jobs(2, "large"))
    # Two jobs of a group and eleven others, in ten slots.
    assert room(chunks, 10 - 13) == (-2, False)


async def test_many_groups_do_not_ask_for_more_and_more(chunks: ChunkCollector) -> None:
    """Each job of another value opens a group, and each group lacks two jobs."""
    claimed, most = 0, 0
    for _ in range(20):
        asked, _ = room(chunks, 10 - claimed)
        if asked <= 0:
            break
        values = (b'{"number":1,"shop":"%d"}' % next(numbers) for _ in range(asked))
        chunks.collect([jobs(1, "by_shop", args=each)[0] for each in values])
        claimed += asked
        most = max(most, asked)
    assert claimed <= 10 + most
    assert claimed < 50


async def test_large_jobs_are_asked_for_a_few_at_a_time(chunks: ChunkCollector) -> None:
    prefetch = PrefetchLimit(1)
    prefetch.observe_size(8 * 1_048_576)
    chunks.collect(jobs(1, "large"))
    assert chunks.room(0, prefetch) == (4, True)


async def test_one_job_can_be_removed(chunks: ChunkCollector) -> None:
    came = jobs(2)
    chunks.collect(came)
    assert chunks.remove(came[0].id, came[0].token + 1) is None
    assert chunks.remove(came[0].id, came[0].token) is came[0]
    assert chunks.remove(came[0].id, came[0].token) is None
    assert chunks.surplus == 0
    assert chunks.take_all() == came[1:]
    assert chunks.surplus == 0


async def test_a_group_is_gone_with_its_last_job(chunks: ChunkCollector) -> None:
    [only] = jobs(1, "at_once")
    chunks.collect([only])
    assert chunks.remove(only.id, only.token) is only
    assert not chunks.ready
    assert chunks.take_all() == []


async def test_a_group_that_finds_no_slot_is_given_up(
    chunks: ChunkCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(chunks_module, "monotonic", lambda: now)
    ready, waiting = jobs(3), jobs(1, "large")
    chunks.collect([*ready, *waiting])
    assert chunks.next_overdue() == now + PATIENCE
    assert chunks.take_overdue(now + PATIENCE - 0.01) == []
    assert chunks.take_overdue(now + PATIENCE) == ready
    assert chunks.take_all() == waiting
    assert chunks.surplus == 0


async def test_with_nothing_left_to_claim_an_eager_group_starts(chunks: ChunkCollector) -> None:
    came = jobs(1)
    chunks.collect(came)
    chunks.queues_empty()
    assert not chunks.ready
    chunks.eager = True
    chunks.queues_empty()
    assert chunks.take() == came
