"""The life of a background loop."""

from __future__ import annotations

import asyncio

import pytest

from headrace.errors import EngineUnavailable
from headrace.loops import loop as loops
from headrace.loops.loop import Loop, backoff


class Counter(Loop):
    """Counts its rounds, and fails when it is told to."""

    name = "counter"

    def __init__(self, pause: float | None = None) -> None:
        super().__init__()
        self.pause = pause
        self.rounds = 0
        self.errors: list[Exception] = []
        self.ticked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.give_up = False

    async def tick(self) -> float | None:
        self.rounds += 1
        self.ticked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return self.pause

    def failed(self, error: Exception) -> None:
        if self.give_up:
            raise RuntimeError("enough") from error

    async def a_round(self) -> None:
        self.ticked.clear()
        # In this very task: whoever waits in another one hears of it later, and may miss a round.
        async with asyncio.timeout(60):
            await self.ticked.wait()


def test_the_back_off_doubles_up_to_30_seconds() -> None:
    assert [backoff(n) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff(10_000) == 30


async def test_a_loop_waits_until_it_is_woken() -> None:
    counter = Counter()
    counter.start()
    await counter.a_round()
    for expected in (2, 3):
        counter.wake()
        await counter.a_round()
        assert counter.rounds == expected
    await counter.stop()
    assert counter.task is not None
    assert counter.task.cancelled()
    assert not counter.running


async def test_a_wake_during_a_round_is_not_lost() -> None:
    counter = Counter()
    counter.gate = asyncio.Event()
    counter.start()
    await counter.a_round()
    counter.wake()
    counter.gate.set()
    await counter.a_round()
    assert counter.rounds == 2
    await counter.stop()


async def test_stop_lets_the_round_finish() -> None:
    counter = Counter()
    counter.gate = asyncio.Event()
    counter.start()
    await counter.a_round()
    stopping = asyncio.create_task(counter.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    counter.gate.set()
    await stopping
    assert counter.rounds == 1


async def test_stop_cancels_a_round_that_takes_too_long() -> None:
    counter = Counter()
    counter.gate = asyncio.Event()
    counter.start()
    await counter.a_round()
    await counter.stop(patience=0.01)
    assert counter.task is not None
    assert counter.task.cancelled()


async def test_errors_are_waited_out_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loops, "backoff", lambda failures: 0.001)
    counter = Counter()
    counter.errors = [EngineUnavailable("away")] * 10
    counter.start()
    for _ in range(2):
        await counter.a_round()
    health = [counter.healthy]
    await counter.a_round()
    health.append(counter.healthy)
    for _ in range(8):
        await counter.a_round()
    health.append(counter.healthy)
    assert health == [True, False, True]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3, lines
    assert "1 in a row" in lines[0]
    assert "unhealthy" in lines[1]
    assert lines[2] == "counter works again after 10 failures"
    await counter.stop()


async def test_a_wake_does_not_cut_a_back_off_short() -> None:
    counter = Counter()
    counter.errors = [ValueError("broken")]
    counter.start()
    await counter.a_round()
    for _ in range(20):
        counter.wake()
        await asyncio.sleep(0)
    assert counter.rounds == 1
    await counter.stop()


async def test_a_loop_that_gives_up_is_unhealthy() -> None:
    counter = Counter()
    counter.give_up = True
    counter.errors = [ValueError("broken")]
    task = counter.start()
    await asyncio.wait({task}, timeout=10)
    assert isinstance(task.exception(), RuntimeError)
    assert not counter.healthy
    await counter.stop()


async def test_starting_twice_is_one_loop() -> None:
    counter = Counter()
    assert counter.start() is counter.start()
    await counter.stop()
    assert counter.start() is not None
    await counter.a_round()
    await counter.stop()


async def test_a_back_off_ends_when_the_engine_has_answered_somebody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "backoff", lambda failures: 3_600.0)
    counter = Counter()
    counter.errors = [EngineUnavailable("away"), ValueError("a fault of its own")]
    counter.start()
    await counter.a_round()
    await asyncio.sleep(0)
    counter.retry_now()
    await counter.a_round()
    # It has other trouble now, of which the engine's answer tells nothing.
    for _ in range(20):
        counter.retry_now()
        await asyncio.sleep(0)
    assert counter.rounds == 2
    await counter.stop()


def test_back_offs_are_spread() -> None:
    pauses = {loops.spread(30.0) for _ in range(50)}
    assert len(pauses) > 10
    assert min(pauses) >= 15
    assert max(pauses) <= 30
