"""Rates as a program uses them: options of lanes and tasks, `RateLimited`, and what `why` says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.model.limits.lane import WIDTH_LIMIT
from headrace.model.limits.rate import Rate, as_rate
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.orchestrator.isolation.error_transport import describe, rebuild
from tests.support.processes import until


@dataclass
class Row:
    """What a job of a chunk works on."""

    number: int


@pytest.fixture
def app(tmp_path: Path) -> headrace.App:
    return headrace.App(f"sqlite:///{tmp_path}/rates.db")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/m", Rate(10, 60, 1)),
        ("100/s", Rate(100, 1, 20)),
        ("1/5s", Rate(1, 5, 1)),
        (" 500 / h ", Rate(500, 3_600, 1)),
        ("0.5/s", Rate(0.5, 1, 1)),
        ("1000/d", Rate(1_000, 86_400, 1)),
    ],
)
def test_a_rate_is_read_from_a_text(text: str, rate: Rate) -> None:
    assert as_rate(text) == rate


def test_a_rate_says_what_it_is() -> None:
    assert as_rate("10/m").words == "10 a minute"
    assert as_rate("0.5/h").words == "0.5 an hour"
    assert as_rate("1/5s").words == "1 in 5 s"


@pytest.mark.parametrize("text", ["", "10", "10/", "/m", "10/w", "-1/s", "0/s", "1/0s", "ten/m", 5])
def test_what_is_no_rate_is_refused_with_a_remedy(text: Any) -> None:
    with pytest.raises(headrace.InvalidSetting, match="10/m"):
        as_rate(text)


@pytest.mark.parametrize(
    "options",
    [
        {"rate": "1/m", "burst": 0},
        {"rate": "1/m", "burst": 1.5},
        {"rate": "1/m", "cost": 0},
        {"rate": "1/m", "cost": "no name"},
        {"rate": "1/m", "count_retries": 3},
        {"burst": 3},
        {"cost": 2},
        {"count_retries": False},
    ],
)
def test_options_that_make_no_sense_are_refused(app: headrace.App, options: Any) -> None:
    with pytest.raises(headrace.InvalidSetting, match=r"burst|cost|count_retries"):
        headrace.Lane("h", **options)
    with pytest.raises(headrace.InvalidSetting, match=r"burst|cost|count_retries"):
        app.task("work", **options)(lambda: None)


def test_a_task_has_a_lane_of_its_own_for_its_rate(app: headrace.App) -> None:
    @app.task(rate="100/s", cost="size", count_retries=False)
    def send(size: int = 3) -> None: ...

    job = send.job()
    assert (job.lane, job.width, job.hold) == ("task:send", WIDTH_LIMIT, False)
    assert (job.rate, job.cost, job.count_retries) == (as_rate("100/s"), 3.0, False)
    assert send.job(size=7).cost == 7.0
    with pytest.raises(headrace.InvalidArguments, match=r"'size'.*got 0"):
        send.job(size=0)


def test_a_lane_brings_its_rate(app: headrace.App) -> None:
    @app.task(lane=headrace.Lane("host:{host}", width=2, rate="10/m", burst=3))
    def fetch(host: str) -> None: ...

    job = fetch.job("a")
    assert (job.lane, job.width, job.rate) == ("host:a", 2, Rate(10, 60, 3))
    other = fetch.options(lane="plain").job("a")
    assert (other.lane, other.rate) == ("plain", None)


def test_a_rate_beside_a_lane_is_refused_with_a_remedy(app: headrace.App) -> None:
    with pytest.raises(headrace.InvalidSetting, match=r"headrace\.Lane\('x', rate='1/s'\)"):
        app.task(lane="x", rate="1/s")


def test_a_cost_has_to_be_an_argument(app: headrace.App) -> None:
    with pytest.raises(headrace.InvalidSetting, match="cost reads 'size'"):

        @app.task(rate="1/s", cost="size")
        def send(length: int) -> None: ...


def test_the_cost_of_an_encrypted_task_is_not_shown(app: headrace.App) -> None:
    with pytest.raises(headrace.InvalidSetting, match="size in plain"):

        @app.task(rate="1/s", cost="size", encrypt=True)
        def send(size: int) -> None: ...


async def test_why_says_when_it_may_start(app: headrace.App) -> None:
    @app.task(lane=headrace.Lane("host:{host}", width=9, rate="10/m"))
    async def fetch(host: str) -> None: ...

    async with app:
        await fetch.enqueue("example.com")
        waits = await fetch.enqueue("example.com")
        await headrace.JobOrchestrator(app).run_until_idle()
        [reason] = await app.why(waits.id)
        at = (await app.get(waits.id)).run_at
        assert reason == f"It may start at {at:%H:%M:%S} UTC: 10 a minute for host:example.com."
        await app.engine.hold_lane("default", "host:example.com", 600)
        await headrace.JobOrchestrator(app).run_until_idle()
        [reason] = await app.why(waits.id)
        assert "lane 'host:example.com' is held until" in reason
        await app.engine.pause("default", True)
        paused, held = await app.why(waits.id)
        assert paused.startswith("Queue 'default' is paused.")
        assert held == reason


async def test_why_tells_of_the_rate_of_a_queue(app: headrace.App) -> None:
    @app.task
    async def work() -> None: ...

    async with app:
        await app.engine.set_rate("default", "", as_rate("1/h"))
        first, second = await work.enqueue(), await work.enqueue()
        async with headrace.JobOrchestrator(app):
            await app.result(first.id, timeout=10)
        reasons = await app.why(second.id)
        assert any("may start the next job at" in each and "1 an hour" in each for each in reasons)


async def test_why_tells_of_the_rate_of_a_lane_that_is_full(app: headrace.App) -> None:
    """Those that have its places wait for the rate, and so do those behind them."""

    @app.task(lane=headrace.Lane("host:{host}", rate="1/h"))
    async def fetch(host: str) -> None: ...

    async with app:
        for _ in range(2):
            await fetch.enqueue("example.com")
        waits = await fetch.enqueue("example.com")
        await headrace.JobOrchestrator(app).run_until_idle()
        reasons = await app.why(waits.id)
        told = [each for each in reasons if "may start the next job at" in each]
        assert len(told) == 1
        assert told[0].startswith("Lane 'host:example.com' may start the next job at ")
        assert told[0].endswith(": 1 an hour.")


async def test_a_chunk_of_a_task_with_a_rate_is_as_large_as_any(app: headrace.App) -> None:
    """Each of its jobs counts, and they take one slot together."""
    sizes: list[int] = []

    @app.task(chunk=20, chunk_wait=1.0, rate="1000/s", burst=100)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        sizes.append(len(chunk))

    async with app:
        await app.enqueue_many([store.job(number=n) for n in range(40)])
        await headrace.JobOrchestrator(app, max_workers=1).run_until_idle()
    assert sizes == [20, 20]


@pytest.mark.parametrize("width", [1, 100])
async def test_a_worker_starts_jobs_at_their_rate(app: headrace.App, width: int) -> None:
    """None early, and none by much later: nobody waits for a poll of a second. In a narrow lane
    each is parked only when the one before it has ended.
    """
    starts: list[float] = []

    @app.task(lane=headrace.Lane("ticks", width=width, rate="20/s", burst=1))
    async def tick(number: int) -> None:
        starts.append(time.monotonic())

    @app.task
    async def other(number: int) -> None: ...

    async with app:
        jobs = await app.enqueue_many([tick.job(n) for n in range(20)])
        others = await app.enqueue_many([other.job(n) for n in range(50)])
        async with headrace.JobOrchestrator(app):
            began = time.monotonic()
            for job in others:
                await app.result(job.id, timeout=10)
            assert time.monotonic() - began < 2
            for job in jobs:
                await app.result(job.id, timeout=10)
    # 19 intervals of 50 ms. How late they are is up to the machine, but not a second each.
    assert 0.85 <= starts[-1] - starts[0] < 5


async def test_a_worker_asks_when_the_engine_says_that_one_may_start(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at its next poll: those of an idle worker are up to a second apart."""
    asked = 0
    exchange = app.engine.exchange

    async def exchange_and_hurry(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        nonlocal asked
        asked += 1
        reply = await exchange(settlements, **claim)
        return msgspec.structs.replace(reply, next_in=0.0)

    monkeypatch.setattr(app.engine, "exchange", exchange_and_hurry)
    async with app, headrace.JobOrchestrator(app):
        await until(lambda: asked >= 100, "asking a hundred times", limit=15)


async def test_rated_jobs_are_claimed_for_free_slots_only(app: headrace.App) -> None:
    """Although jobs were so short that the worker claims many ahead."""
    started = asyncio.Event()
    go_on = asyncio.Event()

    @app.task
    async def short(number: int) -> None: ...

    @app.task(rate="1000/s", burst=100)
    async def work(number: int) -> None:
        started.set()
        await go_on.wait()

    async with app:
        before = await app.enqueue_many([short.job(n) for n in range(200)])
        async with headrace.JobOrchestrator(app, max_workers=2):
            for job in before:
                await app.result(job.id, timeout=10)
            jobs = await app.enqueue_many([work.job(n) for n in range(10)])
            await started.wait()
            states = [job.state for job in await app.engine.get([job.id for job in jobs])]
            assert sum(state.name == "RUNNING" for state in states) <= 2
            go_on.set()
            for job in jobs:
                await app.result(job.id, timeout=10)


async def test_a_handler_holds_its_lane(app: headrace.App) -> None:
    ran: list[int] = []

    @app.task(lane=headrace.Lane("shop:{shop}", width=1, on_retry="yield"), retries=3)
    async def sync(shop: str, page: int) -> None:
        ran.append(page)
        if shop == "strict":
            raise headrace.RateLimited("429", after=600, key=True)
        if shop == "lax":
            raise headrace.RateLimited("429", after=600)

    async with app:
        for shop in ("strict", "lax"):
            for page in range(3):
                await sync.enqueue(shop, page)
        await headrace.JobOrchestrator(app).run_until_idle()
        assert sorted(ran) == [0, 0, 1, 2]
        [key] = await app.engine.rates()
        assert key.lane == "shop:strict"
        assert key.held_until is not None


def test_a_handler_in_a_process_holds_its_lane() -> None:
    """What it raised keeps its meaning on the way to the worker."""
    error = rebuild(describe(headrace.RateLimited("429", after=30, key=True)))
    assert isinstance(error, headrace.RateLimited)
    assert (error.delay, error.key, str(error)) == (30.0, True, "429")
    plain = rebuild(describe(headrace.RateLimited("429", after=30)))
    assert isinstance(plain, headrace.RetryLater)
    assert not getattr(plain, "key", False)
