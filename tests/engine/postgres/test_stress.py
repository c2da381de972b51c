"""Lanes under attack: many connections at random, judged from outside and by the audit.

The attackers enqueue (also inside transactions of their own, some of which roll back), claim, take
notes, finish, retry, release, snooze, suspend, signal, wake, cancel, run again, crash and sweep,
enqueue by policy, and let jobs expire. A log outside the database watches that no lane exceeds its
width and no job is held twice; an audit in one snapshot runs beside them. At the end everything
must come to rest.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from collections.abc import Callable

import asyncpg
import pytest

from headrace.engine.base import Engine
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.durable.writes import Entry, Note
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import ClaimedJob, NewJob
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retry,
    Settlement,
    Snoozed,
)
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim

SECONDS = float(os.environ.get("HEADRACE_TEST_STRESS_SECONDS", "5"))
ATTACKERS = 8
WIDTHS = {f"lane{n}": 1 + n % 3 for n in range(10)}
POLICIES = [
    InsertPolicy(window=0.05),
    InsertPolicy(on_duplicate="replace"),
    InsertPolicy(on_duplicate="debounce", max_wait=0.05),
    InsertPolicy(when_full="refuse"),
    InsertPolicy(when_full="replace"),
    InsertPolicy(when_full="cancel_running"),
]


class Log:
    """What happened, seen from outside: who runs what, from the claim until just before the end."""

    def __init__(self) -> None:
        self.running: dict[str, dict[str, int]] = defaultdict(dict)
        self.made: set[str] = set()
        self.latest: list[str] = []
        self.claims = 0

    def start(self, job: ClaimedJob) -> None:
        self.claims += 1
        place = f"{job.queue}/{job.lane}"
        held = self.running[place]
        assert job.id not in held, f"{job.id} runs twice"
        held[job.id] = job.token
        if job.lane is not None:
            assert len(held) <= WIDTHS[job.lane], f"{place} has {len(held)} holders"

    def some(self, chance: random.Random, count: int) -> list[str]:
        """Jobs that were made not long ago, so that attackers meet at them."""
        latest = self.latest[-300:]
        return chance.sample(latest, min(len(latest), count))

    def make(self, ids: list[str]) -> None:
        self.made.update(ids)
        self.latest += ids

    def end(self, job: ClaimedJob) -> None:
        self.running[f"{job.queue}/{job.lane}"].pop(job.id, None)


class Attacker:
    """One process: its engine, its worker, and its luck."""

    def __init__(self, engine: Engine, number: int, log: Log, dsn: str) -> None:
        self.engine = engine
        self.name = f"attacker{number}"
        self.chance = random.Random(number)
        self.log = log
        self.dsn = dsn
        self.worker = ""
        self.mine: list[ClaimedJob] = []

    def jobs(self) -> list[NewJob]:
        made = []
        for _ in range(self.chance.randint(1, 12)):
            lane = self.chance.choice([None, *WIDTHS])
            width = 1 if lane is None else WIDTHS[lane]
            made.append(
                a_job(
                    queue=self.chance.choice(["a", "b"]),
                    lane=lane,
                    width=width,
                    hold=self.chance.random() < 0.5,
                    priority=self.chance.choice([0, 0, 0, 5]),
                    delay=self.chance.choice([0, 0, 0, 0.01]),
                    key=self.chance.choice([None, None, f"k{self.chance.randint(0, 50)}"]),
                    max_attempts=1000,
                    parent=self.chance.choice([None, None, *self.log.some(self.chance, 1)]),
                    expires_in=self.chance.choice([None, None, None, 0.05, 60]),
                )
            )
        return made

    async def enqueue(self) -> None:
        answers = await self.engine.insert(self.jobs())
        self.log.make([each.id for each in answers if each.created])

    async def enqueue_by_policy(self) -> None:
        for job in self.jobs()[:4]:
            job.policy = self.chance.choice(POLICIES)
            answer = await self.engine.insert_by_policy(job)
            if answer.inserted is not None and answer.inserted.created:
                self.log.make([answer.inserted.id])

    async def enqueue_within(self) -> None:
        assert isinstance(self.engine, PostgresEngine)
        connection = await asyncpg.connect(self.dsn)
        transaction = connection.transaction()
        await transaction.start()
        answers = await self.engine.insert_within(connection, self.jobs())
        await asyncio.sleep(self.chance.random() * 0.02)
        if self.chance.random() < 0.5:
            await transaction.commit()
            self.log.make([each.id for each in answers if each.created])
        else:
            await transaction.rollback()
        await connection.close()

    async def work(self) -> None:
        """Take notes, settle what is held and claim the next, in one trip; some notes are late."""
        told = [
            Note(job.id, job.token, progress=1.0, entries=(Entry("stage", "one", b"1"),))
            for job in self.mine
        ]
        async with asyncio.TaskGroup() as group:
            if self.chance.random() < 0.2:
                group.create_task(self.engine.write_progress(told))
            group.create_task(self.trip())

    async def trip(self) -> None:
        settlements = []
        for job in self.mine:
            self.log.end(job)
            settlements.append(Settlement(job.id, job.token, self.outcome()))
        answer = await self.engine.exchange(
            settlements,
            worker_id=self.worker,
            queues=self.chance.choice([None, ["a"], ["b"], ["a", "b"]]),
            limit=self.chance.randint(0, 20),
        )
        self.mine = answer.jobs
        for job in self.mine:
            self.log.start(job)

    def outcome(self) -> Outcome:
        kind = self.chance.random()
        if kind < 0.6:
            return Completed(b"1")
        delay = self.chance.choice([0, 0, 0.005])
        waits: list[Awaited] = [AwaitedEvent("go"), AwaitedChildren(left=2)]
        others: list[Outcome] = [
            Released(),
            Retry(A_FAILURE, delay),
            Snoozed(delay),
            Snoozed(self.chance.choice([0.02, 60]), (self.chance.choice(waits),)),
        ]
        if kind < 0.7:
            others = [Failed(A_FAILURE), Cancelled()]
        return self.chance.choice(others)

    async def crash(self) -> None:
        """Forget everything and start again; the sweep finds what was held."""
        for job in self.mine:
            self.log.end(job)
        self.mine = []
        self.worker = await a_worker(self.engine, self.name)

    async def sweep(self) -> None:
        lost = await self.engine.take_lost(50)
        await self.engine.exchange(
            [Settlement(each.job.id, each.job.token, Retry(A_FAILURE, 0)) for each in lost]
        )

    async def steer(self) -> None:
        some = self.log.some(self.chance, 12)
        await self.engine.cancel(some[:6])
        await self.engine.rerun(some[6:])

    async def wake(self) -> None:
        for each in self.log.some(self.chance, 3):
            await self.engine.signal(each, "go", b"1")
        suspended = await self.engine.suspended(limit=100)
        await self.engine.wake(self.chance.sample(suspended, len(suspended)))

    async def keep_up(self) -> None:
        await self.engine.promote_due(100)
        await self.engine.expire(20)
        await self.engine.prune(keep=100_000, limit=100)

    async def attack(self, until: float) -> None:
        self.worker = await a_worker(self.engine, self.name)
        verbs: list[Callable[[], object]] = [
            *[self.work] * 10,
            *[self.enqueue] * 3,
            *[self.enqueue_by_policy] * 2,
            self.enqueue_within,
            self.crash,
            self.sweep,
            *[self.steer] * 2,
            *[self.wake] * 2,
            *[self.keep_up] * 2,
        ]
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await self.chance.choice(verbs)()  # type: ignore[misc]


async def watch(engine: PostgresEngine, until: float) -> int:
    """Audit in one snapshot, again and again."""
    looked = 0
    while asyncio.get_running_loop().time() < until:
        assert await engine.audit() == []
        looked += 1
        await asyncio.sleep(0.25)
    return looked


@pytest.mark.timeout(SECONDS + 180)
async def test_lanes_hold_under_attack(
    postgres: PostgresEngine, open_another: Opener, raw: Raw
) -> None:
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = await raw.fetchval(deadlocks)
    log = Log()
    attackers = [
        Attacker(await open_another(), n, log, postgres.address.dsn) for n in range(ATTACKERS)
    ]
    until = asyncio.get_running_loop().time() + SECONDS
    async with asyncio.TaskGroup() as group:
        for attacker in attackers:
            group.create_task(attacker.attack(until))
        watcher = group.create_task(watch(postgres, until))
    assert watcher.result() > 3
    assert log.claims > 200

    # Everything comes to rest: nothing is stuck, nothing got lost.
    for attacker in attackers:
        await attacker.crash()
    worker = await a_worker(postgres, "last")
    async with asyncio.timeout(120):
        while True:
            await attackers[0].sweep()
            await postgres.rerun(await postgres.suspended())
            moved = await postgres.promote_due(1000)
            await postgres.expire(1000)
            jobs = await claim(postgres, worker, 200)
            await postgres.exchange([Settlement(j.id, j.token, Completed()) for j in jobs])
            if not jobs and not moved.moved and moved.next_in is None:
                break
    assert await postgres.audit() == []
    ended = await postgres.get(sorted(log.made))
    assert len(ended) == len(log.made)
    assert {job.status for job in ended} <= {Status.COMPLETED, Status.FAILED, Status.CANCELLED}
    # The order of locks excludes them; one would only cost time, but it would be a sign.
    await raw.execute("SELECT pg_stat_clear_snapshot()")
    assert await raw.fetchval(deadlocks) == before
