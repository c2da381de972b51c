"""Programs that run until a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from headrace.errors import EngineUnavailable, WorkerUnhealthy
from headrace.loops.signals import (
    check_failures,
    exit_code,
    on_stop_signals,
    start_when_available,
    wait_checking,
)

log = logging.getLogger("test")


async def _send(number: signal.Signals, event: asyncio.Event) -> None:
    event.clear()
    os.kill(os.getpid(), number)
    await asyncio.wait_for(event.wait(), 60)


async def test_each_signal_takes_the_next_step_and_the_last_step_stays() -> None:
    steps: list[str] = []
    came = asyncio.Event()

    def step(name: str, number: signal.Signals) -> None:
        steps.append(f"{name} {number.name}")
        came.set()

    with on_stop_signals(
        lambda number: step("stop", number), lambda number: step("hurry", number)
    ) as received:
        assert exit_code(received) == 0
        await _send(signal.SIGTERM, came)
        assert exit_code(received) == 0
        await _send(signal.SIGINT, came)
        await _send(signal.SIGTERM, came)
    assert steps == ["stop SIGTERM", "hurry SIGINT", "hurry SIGTERM"]
    assert exit_code(received) == 128 + signal.SIGINT


async def test_signals_are_handled_as_before_afterwards() -> None:
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal comes where it wants
        with on_stop_signals(lambda _: None):
            pass
        os.kill(os.getpid(), signal.SIGINT)


async def test_a_start_is_tried_again_while_the_engine_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.loops.signals.spread", lambda _: 0.0)
    failures = [EngineUnavailable("gone"), EngineUnavailable("gone")]

    async def start() -> None:
        if failures:
            raise failures.pop()

    assert await start_when_available(start, asyncio.Event(), retries=2, log=log)
    assert failures == []


async def test_a_start_gives_up_after_as_many_retries_as_are_allowed() -> None:
    async def start() -> None:
        raise EngineUnavailable("gone")

    with pytest.raises(WorkerUnhealthy, match="1 times in a row and connection_retries is 0: gone"):
        await start_when_available(start, asyncio.Event(), retries=0, log=log)


async def test_a_start_ends_when_it_is_told_to_stop() -> None:
    stop = asyncio.Event()

    async def start() -> None:
        stop.set()
        raise EngineUnavailable("gone")

    assert not await start_when_available(start, stop, retries=None, log=log)


async def test_what_a_check_raises_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.loops.signals.CHECK_SECONDS", 0.001)

    def check() -> None:
        check_failures(4, None, retries=3, what="the broker failed")

    with pytest.raises(WorkerUnhealthy, match="the broker failed 4 times in a row"):
        await wait_checking(asyncio.Event(), check)


def test_no_number_of_failures_is_too_many_without_a_limit() -> None:
    check_failures(1_000, None, retries=None)
