"""A small shop during a bad night, for pictures: always the same, to the second and to the id.

Jobs, workers, lanes, dead letters and series are written by Headrace's own code. What would take
an hour is done at once, on a clock that only the scene moves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.clock import Clock
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.model import ids
from headrace.model.fingerprint import fingerprint
from headrace.model.job import ClaimedJob, JobFilter, NewJob
from headrace.model.outcome import (
    AttemptEntry,
    Completed,
    Failed,
    Failure,
    Outcome,
    Retry,
    Settlement,
    TimedOut,
)
from headrace.model.status import Status
from headrace.model.worker import WorkerStats
from headrace.monitor import snapshot
from headrace.monitor.series.depths import DepthSampler
from headrace.monitor.series.write import MinuteWriter
from headrace.monitor.snapshot import DISPATCHER, Snapshots
from headrace.server.auth.audit import AuditLog
from headrace.server.auth.caller import Caller
from headrace.telemetry import Telemetry
from tests.support.verbs import LEASE, a_worker

BEGIN = datetime(2026, 3, 10, 1, 58, tzinfo=UTC)
MINUTES = 66
# From this minute on the mail server cannot be reached.
TROUBLE = 60
# From this one on nothing is heard of a worker.
LOST = 52
QUEUES = ("mail", "invoices", "reports")
MAIL_DOWN = Failure(
    "ConnectionError",
    "cannot reach smtp-2.shop.example:25 after 10.0 s",
    "Traceback (most recent call last):\n"
    '  File "/srv/shop/mail.py", line 41, in send_receipt\n'
    "    await smtp.connect(host, port, timeout=10)\n"
    "ConnectionError: cannot reach smtp-2.shop.example:25 after 10.0 s\n",
)
NO_ADDRESS = Failure("KeyError", "'postcode'")
TOO_SLOW = Failure("TimeoutError", "the attempt took longer than 30 s")


class StillClock(Clock):
    """Stands still unless it is moved."""

    def now(self) -> float:
        """Return the moment that the scene has come to."""
        return BEGIN.timestamp() + self.offset


class Shop(NamedTuple):
    """The scene: its App, a key for everything, and what its pages are about."""

    app: headrace.App
    key: str
    job: str
    run: str


@contextmanager
def still(clock: Clock) -> Iterator[None]:
    """Let ids be made of the scene's time, and always the same."""
    chance = random.Random(14)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: int(clock.now() * 1e9)))
        patch.setattr(ids, "os", SimpleNamespace(urandom=chance.randbytes))
        for name, value in (("_last", 0), ("_random", b""), ("_used", 0)):
            patch.setattr(ids, name, value)
        patch.setattr(snapshot, "FRESH_SECONDS", 0.0)
        yield


def make_shop(folder: Path, clock: Clock) -> headrace.App:
    """An App with the tasks of the shop. Handlers take time by moving the clock."""
    app = headrace.App(f"sqlite:///{folder}/shop.db", artifacts=str(folder / "files"), clock=clock)

    @app.task(queue="mail", retries=3, timeout=30)
    async def send_receipt(order: int, to: str) -> None:
        """Mail the receipt of an order."""

    @app.task(queue="mail", retries=1)
    async def send_newsletter(issue: str, to: str) -> None:
        """Mail one copy of the newsletter."""

    @app.task(queue="invoices", lane="customer:{customer}")
    async def make_invoice(customer: int, order: int) -> str:
        """Write an invoice. Those of one customer are numbered one after the other."""
        return f"2026-{order}"

    @app.task(queue="reports", retries=0)
    async def collect_sales(day: str) -> list[str]:
        """Add up the sales of a day."""
        clock.advance(14)
        return ["north", "south", "online"]

    @app.task(queue="reports", retries=0)
    async def draw_report(region: str) -> str:
        """Draw the report of one region."""
        clock.advance(9)
        return f"{region}.pdf"

    @app.task(queue="reports", retries=0)
    async def upload_reports(files: list[str]) -> None:
        """Send reports to the bookkeeper."""
        clock.advance(6)
        raise PermissionError("the bookkeeper's server refuses the password of 'shop'")

    @app.task(queue="reports", retries=0)
    async def tell_team() -> None:
        """Say that reports are there."""

    daily = app.workflow("daily-report", params={"day": str})
    sales = daily.step("collect", collect_sales, {"day": daily.params.day})
    drawn = daily.step("draw", draw_report, {"region": daily.item}, each=sales.output)
    sent = daily.step("upload", upload_reports, {"files": drawn.output})
    daily.step("tell", tell_team, needs=[sent])
    return app


class Night:
    """Fills the store, minute by minute."""

    def __init__(self, app: headrace.App, clock: Clock) -> None:
        self.app, self.clock, self.engine = app, clock, app.engine
        self.chance = random.Random(7)
        self.order = 48_100
        self.workers: dict[str, str] = {}
        self.telemetry = Telemetry()
        self.depths = DepthSampler(app, Snapshots(app))
        self.audit = AuditLog(app)

    async def begin(self) -> None:
        """Start workers and the writer of their minutes."""
        for name in ("worker-1", "worker-2", "worker-3"):
            host = f"shop-{name[-1]}"
            self.workers[name] = await a_worker(self.engine, name, host=host, version="0.1.0")
        self.writer = MinuteWriter(
            engine=self.engine,
            telemetry=self.telemetry,
            worker=lambda: "worker-1",
            clock=self.clock,
        )

    async def renew(self, *names: str) -> None:
        """Let workers say that they live."""
        for name in names:
            keeper = self.engine.keeper(self.workers[name], LEASE)
            try:
                load = self.chance.randrange(20, 45)
                stats = WorkerStats(running=3, memory_bytes=load * 3_000_000, cpu_percent=load)
                assert (await asyncio.to_thread(keeper.renew, stats)).alive, name
            finally:
                await asyncio.to_thread(keeper.close)

    def jobs(
        self, task: str, count: int, *, delay: float | None = None, customer: int | None = None
    ) -> list[NewJob]:
        """New jobs of a task."""
        made = []
        for _ in range(count):
            self.order += 1
            to = f"customer-{self.chance.randrange(900)}@example.com"
            args: dict[str, dict[str, Any]] = {
                "send_receipt": {"order": self.order, "to": to},
                "send_newsletter": {"issue": "spring", "to": to},
                "make_invoice": {
                    "customer": customer or self.chance.randrange(40, 90),
                    "order": self.order,
                },
                "draw_report": {"region": self.chance.choice(["north", "south", "online"])},
            }
            made.append(self.app.job(task, args[task], delay=delay))
        return made

    async def minute(self, number: int) -> None:
        """Enqueue, run and write down what happens in one minute."""
        busy = 6 + round(4 * abs((number % 24) / 12 - 1))
        new = [*self.jobs("send_receipt", busy), *self.jobs("make_invoice", busy // 3)]
        new += self.jobs("send_newsletter", number % 3)
        if number < 50:
            new += self.jobs("draw_report", 1)
        await self.engine.insert(new)
        self.clock.advance(self.chance.uniform(0.02, 0.4))
        await self.engine.promote_due(100)
        for name in ("worker-1", "worker-2"):
            claimed = await self.engine.exchange(
                [], worker_id=self.workers[name], queues=QUEUES, limit=busy + 4
            )
            for job in claimed.jobs:
                await self.settle(job, self.outcome(job, number), name)
        await self.depths.tick()
        alive = ("worker-1", "worker-2", "worker-3") if number < LOST else ("worker-1", "worker-2")
        while (rest := 60 - self.clock.now() % 60) > LEASE / 2:
            await self.renew(*alive)
            self.clock.advance(LEASE / 2)
        await self.renew(*alive)
        self.clock.advance(rest)
        await self.writer.write(self.clock.now())

    def outcome(self, job: ClaimedJob, number: int) -> Outcome:
        """How an attempt ends: most are well, until the mail server is gone."""
        chance = self.chance.random()
        if job.queue == "mail" and number >= TROUBLE and chance < 0.9:
            last = job.attempt >= job.max_attempts or chance < 0.65
            return Failed(MAIL_DOWN) if last else Retry(MAIL_DOWN, 50.0)
        if job.task == "make_invoice" and chance < 0.05:
            return Failed(NO_ADDRESS)
        if job.task == "draw_report" and chance < 0.08:
            return TimedOut(TOO_SLOW)
        return Completed(b'"2026-48173"' if job.task == "make_invoice" else b"null")

    async def settle(self, job: ClaimedJob, outcome: Outcome, worker: str) -> None:
        """Record an outcome, and count it as a worker does."""
        counters = self.telemetry.of(job.task, job.queue)
        began = self.clock.utcnow()
        self.clock.advance(self.chance.uniform(0.05, 0.9))
        run = (self.clock.utcnow() - began).total_seconds()
        entry = None
        if isinstance(outcome, Completed):
            counters.completed += 1
        else:
            assert isinstance(outcome, Failed | Retry | TimedOut)
            word = {Failed: "failed", Retry: "retry", TimedOut: "timeout"}[type(outcome)]
            failure = outcome.failure
            counters.count(word)
            counters.count_error((failure.type, fingerprint(failure.type, failure.message)))
            entry = msgspec.json.encode(
                AttemptEntry(
                    attempt=job.attempt,
                    token=job.token,
                    outcome=word,
                    worker=worker,
                    ended_at=self.clock.utcnow(),
                    started_at=began,
                    failure=failure,
                )
            )
        counters.wait.observe(max(job.wait, 0.001))
        counters.run.observe(run)
        await self.engine.exchange([Settlement(job.id, job.token, outcome, entry)])

    async def change(self, who: str, action: str, target: str, **detail: Any) -> None:
        """Write something that somebody did to the audit log."""
        caller = Caller(name=who, scope="admin", key_id=f"{who:0<16}")
        await self.audit.changed(caller, action, target, **detail)


async def fill(app: headrace.App, clock: Clock) -> Shop:
    """Everything that happened in the shop that night."""
    night = Night(app, clock)
    _, key = await create_key(app, name="ada", scope="admin")
    await create_key(app, name="deploy", scope="write")
    await create_key(app, name="support", scope="read", queues=["mail"])
    await app.put_schedule(
        "nightly-report", "*/15 * * * *", "draw_report", params={"region": "online"},
        tz="Europe/Berlin",
    )  # fmt: skip
    await app.put_schedule(
        "newsletter", "0 8 * * 1", "send_newsletter", params={"issue": "next", "to": "all"}
    )
    cron = CronDispatcher(app)
    cron.id = "cron-1"
    run = await app.workflows.run("daily-report", {"day": "2026-03-09"})
    await headrace.JobOrchestrator(app, name="worker-0", max_workers=1).run_until_idle()
    clock.advance(60 - clock.now() % 60)
    await night.begin()
    for number in range(MINUTES):
        await cron.tick()
        if number == 40:
            await night.change("ada", "schedule.put", "nightly-report")
            await night.change("deploy", "workflow.run", run.id)
        if number == 50:
            reason = "the warehouse is being moved"
            await app.pause("reports", reason=reason, by="ada")
            await night.change("ada", "queue.pause", "reports", reason=reason)
            await night.engine.insert(night.jobs("draw_report", 14))
        if number == 51:
            # A machine is lost with one job, and one invoice takes very long.
            for worker, customer, count in (("worker-3", 21, 1), ("worker-1", 7, 6)):
                await night.engine.insert(night.jobs("make_invoice", count, customer=customer))
                await night.engine.exchange(
                    [], worker_id=night.workers[worker], queues=["invoices"], limit=1
                )
        await night.minute(number)
    return await _end(night, key, run.id)


async def _end(night: Night, key: str, run: str) -> Shop:
    """What has happened in the last minutes."""
    app, engine = night.app, night.engine
    await engine.insert(night.jobs("send_newsletter", 9, delay=18_000.0))
    dropped = night.jobs("send_newsletter", 3)
    await engine.insert(dropped)
    for job in dropped:
        await app.cancel(job.id, reason="sent twice")
        await night.change("ada", "job.cancel", job.id)
    await engine.insert(night.jobs("send_receipt", 12))
    await engine.exchange([], worker_id=night.workers["worker-2"], queues=["mail"], limit=4)
    reasons = [('unknown task "send_reciept"', 6), ("the message is not JSON", 2)]
    for reason, count in reasons:
        message = b'{"handler_name":"send_reciept","params":{"order":48201}}'
        rejected = [
            RejectedMessage(
                Message(
                    body=message if "task" in reason else b"order=48201",
                    topic="orders",
                    key=f"orders:0:{number + count * 1000}",
                    partition=0,
                    offset=number + count * 1000,
                    sent_at=night.clock.now() - 60 * number,
                ),
                "UnknownTask" if "task" in reason else "InvalidMessage",
                reason,
            )
            for number in range(count)
        ]
        await DeadLetters(app).keep("kafka", rejected)
    for name, report in {
        "orders-1": {"type": "queue", "adapter": "kafka", "lag": 12, "stored": 48_210},
        "cron-1": {"type": "cron", "adapter": "cron", "schedules": 2, "stored": 5},
    }.items():
        body = msgspec.json.encode(report | {"healthy": True})
        await engine.record_put(DISPATCHER, name, body)
    wanted = JobFilter(tasks=("draw_report",), statuses=(Status.TIMEOUT,))
    await app.start_bulk("retry", wanted, who="ada", reason="reports were too slow")
    await app.set_rate("mail", "300/m", burst=30)
    await app.set_rate("invoices", "6/m", lane="customer:7", burst=2)
    await app.hold("invoices", lane="customer:21", duration=900, reason="a dispute", by="ada")
    night.clock.advance(12)
    await night.renew("worker-1", "worker-2")
    failed = JobFilter(tasks=("send_receipt",), statuses=(Status.FAILED,))
    jobs = (await engine.list_jobs(failed, limit=100)).jobs
    return Shop(app, key, max(jobs, key=lambda job: job.attempt).id, run)
