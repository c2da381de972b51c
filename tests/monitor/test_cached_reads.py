"""Reads that many share: one at a time, kept for a while, and nobody waits for a newer one."""

from __future__ import annotations

import asyncio
import weakref

import pytest

from headrace.monitor import cached_reads
from headrace.monitor.cached_reads import CachedReads


class Store:
    """Counts its reads; each waits until it may go on."""

    def __init__(self) -> None:
        self.reads = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.broken = False

    async def read(self) -> int:
        self.reads += 1
        number = self.reads
        await self.go_on.wait()
        if self.broken:
            raise RuntimeError("away")
        return number


class Seconds:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(cached_reads, "time", clock)
    return clock


async def some_turns() -> None:
    """Let tasks go on that wait for nothing else."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_callers_share_a_read_until_it_is_old(time: Seconds) -> None:
    store, reads = Store(), CachedReads[int](2.0)
    both = await asyncio.gather(reads.get("a", store.read), reads.get("a", store.read))
    assert [*both] == [1, 1]
    time.now += 1.9
    assert await reads.get("a", store.read) == 1
    time.now += 0.2
    assert await reads.get("a", store.read) == 2


async def test_an_old_result_is_returned_while_it_is_read_anew(time: Seconds) -> None:
    store, reads = Store(), CachedReads[int](2.0, meanwhile=10.0)
    assert await reads.get("a", store.read) == 1
    time.now += 3.0
    store.go_on.clear()
    assert [await reads.get("a", store.read) for _ in range(3)] == [1, 1, 1]
    await asyncio.sleep(0)
    assert store.reads == 2
    store.go_on.set()
    await some_turns()
    assert await reads.get("a", store.read) == 2
    assert store.reads == 2


async def test_what_nobody_waits_for_may_be_read_otherwise(time: Seconds) -> None:
    store, reads, again = Store(), CachedReads[int](2.0, meanwhile=10.0), list[int]()

    async def slowly() -> int:
        again.append(await store.read())
        return again[-1]

    assert await reads.get("a", store.read, slowly) == 1
    time.now += 3.0
    assert await reads.get("a", store.read, slowly) == 1
    await some_turns()
    assert (await reads.get("a", store.read, slowly), again) == (2, [2])
    # There is nothing to show: somebody waits.
    time.now += 30.0
    assert (await reads.get("a", store.read, slowly), again) == (3, [2])


async def test_a_result_is_kept_no_longer_than_is_asked_for(time: Seconds) -> None:
    async def read() -> float:
        time.now += 1.0
        return time.now

    for times, kept in ((None, True), (0.0, False)):
        reads = CachedReads[float](2.0, times=times)
        first = await reads.get("a", read)
        time.now += 5.0
        assert (await reads.get("a", read) == first) is kept


async def test_a_result_that_is_too_old_is_waited_for(time: Seconds) -> None:
    store, reads = Store(), CachedReads[int](2.0, meanwhile=10.0)
    assert await reads.get("a", store.read) == 1
    time.now += 12.5
    assert await reads.get("a", store.read) == 2
    # Also if the read that was begun in time does not end.
    time.now += 3.0
    store.go_on.clear()
    assert await reads.get("a", store.read) == 2
    time.now += 10.0
    late = asyncio.create_task(reads.get("a", store.read))
    await asyncio.sleep(0)
    assert not late.done()
    store.go_on.set()
    assert await late == 3


async def test_a_read_that_failed_is_told_and_not_kept(time: Seconds) -> None:
    store, reads = Store(), CachedReads[int](2.0, meanwhile=10.0)
    assert await reads.get("a", store.read) == 1
    time.now += 3.0
    store.broken = True
    assert await reads.get("a", store.read) == 1
    await some_turns()
    with pytest.raises(RuntimeError, match="away"):
        await reads.get("a", store.read)
    store.broken = False
    assert await reads.get("a", store.read) == 4


async def test_what_was_read_before_a_change_is_not_returned_after_it(time: Seconds) -> None:
    store, reads = Store(), CachedReads[int](2.0, meanwhile=10.0)
    assert await reads.get("a", store.read) == 1
    # Neither what is fresh,
    reads.forget()
    assert await reads.get("a", store.read) == 2
    # nor what is returned while it is read anew, nor a read that was begun before.
    time.now += 3.0
    store.go_on.clear()
    assert await reads.get("a", store.read) == 2
    begun = asyncio.create_task(reads.get("b", store.read))
    await asyncio.sleep(0)
    reads.forget()
    later = [asyncio.create_task(reads.get(key, store.read)) for key in "ab"]
    await some_turns()
    assert not any(each.done() for each in (begun, *later))
    store.go_on.set()
    assert await begun == 4
    assert [await each for each in later] == [5, 6]


async def test_results_of_long_ago_are_let_go(time: Seconds) -> None:
    class Result:
        pass

    async def read() -> Result:
        return Result()

    reads = CachedReads[Result](2.0, meanwhile=10.0)
    first = weakref.ref(await reads.get("a", read))
    for _ in range(3):
        time.now += 3.0
        await reads.get("a", read)
        await some_turns()
    assert first() is None


async def test_the_time_may_be_that_of_another_clock(time: Seconds) -> None:
    store, other = Store(), Seconds()
    reads = CachedReads[int](2.0, clock=other.monotonic)
    assert await reads.get("a", store.read) == 1
    time.now += 9.0
    assert await reads.get("a", store.read) == 1
    other.now += 2.0
    assert await reads.get("a", store.read) == 2
