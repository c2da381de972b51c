"""Each kind of alert, provoked for real, and mended again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

import headrace
from headrace.breakers.by_hand import close_by_hand, open_by_hand
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.dispatchers.heartbeat import DispatcherHeartbeat
from headrace.model.worker import WorkerStats
from headrace.monitor.findings.lanes import LONG_SECONDS
from headrace.monitor.findings.read import BREAKERS_SECONDS
from tests.alerts.conftest import Alerts
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue

Change = Callable[[Alerts], Awaitable[Any]]
LARGE = "x" * 400_000


class Provoked(msgspec.Struct, frozen=True):
    """A rule, how its condition comes about, how it ends, and what people are told."""

    rule: dict[str, Any]
    provoke: Change
    mend: Change
    says: str
    subject: str


async def run(alerts: Alerts, task: str, number: int) -> None:
    await alerts.app.enqueue_many([alerts.app.job(task) for _ in range(number)])
    await headrace.JobOrchestrator(alerts.app, name="working").run_until_idle()


async def three_jobs(alerts: Alerts) -> None:
    for _ in range(3):
        await enqueue(alerts.engine, queue="mail")


async def an_old_job(alerts: Alerts) -> None:
    await enqueue(alerts.engine, queue="mail")
    alerts.clock.advance(601)


async def empty(alerts: Alerts) -> None:
    worker = await a_worker(alerts.engine, queues=("mail",))
    for job in await claim(alerts.engine, worker, 10, ["mail"]):
        await complete(alerts.engine, job)
    await alerts.engine.retire(worker)


async def failing(alerts: Alerts) -> None:
    await run(alerts, "fine", 4)
    await run(alerts, "broken", 6)
    alerts.clock.advance(75)


async def slow_start(alerts: Alerts) -> None:
    jobs = [alerts.app.job("fine") for _ in range(10)]
    await alerts.app.enqueue_many(jobs)
    alerts.clock.advance(120)
    await headrace.JobOrchestrator(alerts.app, name="working").run_until_idle()
    alerts.clock.advance(75)


async def minutes_pass(alerts: Alerts) -> None:
    alerts.clock.advance(240)


async def lost_worker(alerts: Alerts) -> None:
    await a_worker(alerts.engine, "crane")
    alerts.clock.advance(LEASE + 1)
    await alerts.engine.take_lost(1)


async def worker_is_back(alerts: Alerts) -> None:
    await a_worker(alerts.engine, "crane")


async def blocked_lane(alerts: Alerts) -> None:
    engine = alerts.engine
    worker = await a_worker(engine, "holding")
    for _ in range(3):
        await enqueue(engine, queue="mail", lane="user:7")
    await claim(engine, worker)
    keeper = engine.keeper(worker, LEASE)
    for _ in range(int(LONG_SECONDS // 20) + 1):
        alerts.clock.advance(20)
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)


async def lane_goes_on(alerts: Alerts) -> None:
    engine = alerts.engine
    [holding] = [each for each in await engine.workers() if each.name == "holding"]
    for job in await engine.claimed_by(holding.id):
        await complete(engine, job)
    while jobs := await claim(engine, holding.id):
        await complete(engine, jobs[0])
    await engine.retire(holding.id)


async def open_breaker(alerts: Alerts) -> None:
    await open_by_hand(alerts.engine, ("mail", "task:send"), 600, by="ada", reason=None)
    alerts.clock.advance(BREAKERS_SECONDS + 1)


async def breaker_is_closed(alerts: Alerts) -> None:
    assert await close_by_hand(alerts.engine, ("mail", "task:send"))
    alerts.clock.advance(BREAKERS_SECONDS + 1)


async def missed_schedule(alerts: Alerts) -> None:
    await alerts.app.put_schedule("nightly", "*/5 * * * *", "fine", missed="all")
    alerts.clock.advance(900)


async def schedule_fires(alerts: Alerts) -> None:
    await CronDispatcher(alerts.app).tick()
    alerts.clock.advance(11)


def heartbeat(alerts: Alerts, **report: object) -> DispatcherHeartbeat:
    async def told() -> dict[str, object]:
        return report

    return DispatcherHeartbeat(
        host=alerts.app,
        type="queue",
        adapter="kafka",
        report=told,
        name="orders",
        on_answer=lambda: None,
    )


async def silent_dispatcher(alerts: Alerts) -> None:
    await heartbeat(alerts, lag=0).tick()
    alerts.clock.advance(40)


async def dispatcher_reports(alerts: Alerts) -> None:
    await heartbeat(alerts, lag=0).tick()


async def slow_dispatcher(alerts: Alerts) -> None:
    await heartbeat(alerts, lag=250).tick()


async def a_dead_letter(alerts: Alerts) -> None:
    message = Message(body=b"{", topic="orders", key="m1")
    letters = DeadLetters(alerts.app)
    await letters.keep("kafka", [RejectedMessage(message, "DecodeError", "no JSON")])
    alerts.clock.advance(11)


async def letter_is_removed(alerts: Alerts) -> None:
    for letter in (await alerts.app.dead_letters()).dead_letters:
        await alerts.app.remove_dead_letter(letter.id)
    alerts.clock.advance(11)


async def full(alerts: Alerts) -> None:
    space = (await alerts.engine.report()).space
    assert space is not None
    await alerts.rule(kind="engine_space", above=space.used_bytes + 1_000_000, severity="critical")
    assert await alerts.told() == []
    args = msgspec.json.encode({"text": LARGE})
    # Texts of random letters: PostgreSQL compresses others.
    for number in range(8):
        await enqueue(alerts.engine, queue="mail", args=_random(args, number))
    alerts.clock.advance(61)


def _random(args: bytes, seed: int) -> bytes:
    import random

    letters = random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=len(args))
    return msgspec.json.encode({"text": "".join(letters)})


async def more_room(alerts: Alerts) -> None:
    await alerts.rule(kind="engine_space", above="1TB", severity="critical")
    alerts.clock.advance(61)


KINDS: dict[str, Provoked] = {
    "queue_length": Provoked(
        {"above": 2, "queues": ["m*"]}, three_jobs, empty, "has 3 pending jobs, more than 2", "mail"
    ),
    "queue_age": Provoked({"above": "10m"}, an_old_job, empty, "has waited for 10 min", "mail"),
    "failure_rate": Provoked(
        {"above": 0.5, "window": 120, "least": 10, "by": "queue"},
        failing,
        minutes_pass,
        "6 of 10 jobs of queue 'mail' failed in 2 min: 60%, more than 50%",
        "mail",
    ),
    "wait_p95": Provoked(
        {"above": "1m", "window": 120, "least": 5, "by": "task"},
        slow_start,
        minutes_pass,
        "5 in 100 jobs of task 'fine' waited for",
        "fine",
    ),
    "worker_lost": Provoked(
        {"names": ["crane"]}, lost_worker, worker_is_back, "worker 'crane' is lost", "crane"
    ),
    "lane_stuck": Provoked(
        {"queues": ["mail"]}, blocked_lane, lane_goes_on, "lane 'user:7' of queue", "mail/user:7"
    ),
    "breaker_open": Provoked(
        {"queues": ["mail"]},
        open_breaker,
        breaker_is_closed,
        "the circuit breaker of lane 'task:send' in queue 'mail' is open: opened by hand by ada",
        "mail/task:send",
    ),
    "schedule_missed": Provoked(
        {}, missed_schedule, schedule_fires, "schedule 'nightly' was due at", "nightly"
    ),
    "dispatcher_silent": Provoked(
        {}, silent_dispatcher, dispatcher_reports, "'orders' has not reported since", "orders"
    ),
    "dispatcher_behind": Provoked(
        {"above": 200}, slow_dispatcher, dispatcher_reports, "250 messages wait", "orders"
    ),
    "dead_letters": Provoked(
        {"above": 0}, a_dead_letter, letter_is_removed, "there are 1 dead letter", "dead letters"
    ),
    "engine_space": Provoked({"above": "1TB"}, full, more_room, "the engine uses", "engine"),
}
