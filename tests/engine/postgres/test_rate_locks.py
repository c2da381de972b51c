"""What rates lock, and whom that holds up: keys come last, in their order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.postgres.connection import connection
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.errors import may_repeat
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.job import NewJob
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Completed, Outcome, Retry, Settlement
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.test_lock_order import meeting
from tests.engine.rate_words import MINUTE, insert, parked, rated, started
from tests.support.verbs import A_FAILURE, a_worker, claim, settle, status, the_job

KEY = "SELECT FROM rate WHERE lane = $1 FOR NO KEY UPDATE"
SOON = 10


@pytest.fixture
async def inside(postgres: PostgresEngine, raw: Raw) -> Raw:
    """The stranger, in our schema."""
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    return raw


async def a_worker_that_has_claimed(engine: Engine) -> str:
    """Within one transaction the stranger does not see connections that are opened later."""
    worker = await a_worker(engine)
    assert await started(engine, worker) == []
    return worker


async def at_once(verb: Awaitable[object]) -> None:
    """It waits for nobody."""
    await asyncio.wait_for(verb, SOON)


@pytest.mark.parametrize("first", ["a", "b"])
async def test_claims_lock_keys_in_their_order(
    postgres: PostgresEngine, inside: Raw, first: str
) -> None:
    """Whatever the order of the jobs: else two claims could wait for each other."""
    worker = await a_worker_that_has_claimed(postgres)
    second = "ab".replace(first, "")
    ids = await insert(postgres, rated(lane=first), rated(lane=second))
    async with inside.transaction():
        await inside.execute(KEY, "a")
        claiming = await meeting(inside, started(postgres, worker))
        await inside.execute(KEY + " NOWAIT", "b")
        await inside.execute("SELECT FROM job FOR UPDATE NOWAIT")
    assert await claiming == ids


async def test_what_others_have_started_meanwhile_counts(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """A claim that had to wait for a key decides by what is kept of it then."""
    worker = await a_worker_that_has_claimed(postgres)
    [job_id] = await insert(postgres, rated())
    async with inside.transaction():
        await inside.execute("UPDATE rate SET tat = date_part('epoch', now()) + 60")
        claiming = await meeting(inside, started(postgres, worker))
    assert await claiming == []
    assert await parked(postgres, job_id)


async def test_a_claim_counts_from_when_it_has_the_key(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """Not from when it began to wait: what was paid for meanwhile is paid for."""
    worker = await a_worker_that_has_claimed(postgres)
    [job_id] = await insert(postgres, rated())
    async with inside.transaction():
        await inside.execute(KEY, "h")
        claiming = await meeting(inside, started(postgres, worker))
        await inside.execute("UPDATE rate SET tat = date_part('epoch', clock_timestamp())")
    assert await claiming == [job_id]


async def test_what_was_counted_while_this_waited_is_not_taken_for_a_clock_that_was_ahead(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """It is later than when this began, by more than what a clock may be wrong."""
    await insert(postgres, rated())
    async with inside.transaction():
        await inside.execute(KEY, "h")
        changing = await meeting(inside, insert(postgres, rated(burst=2)))
        await inside.execute("SELECT pg_sleep(1.2)")
        owed = await inside.fetchval(
            "UPDATE rate SET counted_at = date_part('epoch', clock_timestamp()), "
            "tat = date_part('epoch', clock_timestamp()) + 60 RETURNING tat"
        )
    await changing
    assert await inside.fetchval("SELECT tat FROM rate") == pytest.approx(owed, abs=0.01)


async def test_a_job_that_was_parked_meanwhile_is_not_put_back(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """A better one comes, but this one keeps its place: it has been parked, and is due again."""
    [first] = await insert(postgres, rated(width=1))
    async with inside.transaction():
        await inside.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", first)
        inserting = await meeting(inside, insert(postgres, rated(width=1, priority=9)))
        await inside.execute("UPDATE job SET parked = 0, hold = true, pinned = true")
    await inserting
    [view] = await postgres.lanes()
    assert (view.used, view.waiting, view.holders) == (1, 1, (first,))


async def test_who_stores_jobs_at_the_same_rate_does_not_wait_for_claims(
    postgres: PostgresEngine, inside: Raw
) -> None:
    await insert(postgres, rated())
    async with inside.transaction():
        await inside.execute(KEY, "h")
        await at_once(insert(postgres, rated()))
        changing = await meeting(inside, insert(postgres, rated("2/m")))
    await changing
    assert [view.rate for view in await postgres.rates()] == [as_rate("2/m")]


async def test_nobody_who_has_a_key_waits_for_a_job(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    """A claim waits for keys while it has locked jobs."""
    worker = await a_worker(postgres)
    _, second, third = await insert(postgres, *(rated("1/h") for _ in range(3)))
    await started(postgres, worker)
    async with inside.transaction():
        await inside.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", second)
        await at_once(postgres.set_rate("default", "h", as_rate("1/m")))
        await at_once(postgres.hold_lane("default", "h", 0))
        await at_once(insert(postgres, rated("2/m", delay=1e6)))
        assert await status(postgres, third) is Status.PENDING
        assert await parked(postgres, second)
    assert await postgres.cancel([second]) == {second: True}
    clock.advance(MINUTE + 1)
    assert await started(postgres, worker) == [third]


async def test_a_key_that_somebody_uses_is_not_forgotten(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    """Who stores a job has locked its key, though nobody sees the job yet."""
    worker = await a_worker(postgres)
    [job_id] = await insert(postgres, rated())
    [job] = await claim(postgres, worker)
    await settle(postgres, job, Completed(b"1"))
    clock.advance(10 * MINUTE)
    async with inside.transaction():
        await inside.execute("SELECT FROM rate FOR KEY SHARE")
        await at_once(postgres.prune(older_than=1e6))
    assert [view.lane for view in await postgres.rates()] == ["h"]
    await postgres.prune(older_than=1e6)
    assert await postgres.rates() == []
    assert await inside.fetchval("SELECT count(*) FROM rate") == 0
    assert await postgres.rerun([job_id]) == [job_id]


async def test_a_callers_transaction_says_rates_and_holds_up_nobody(
    postgres: PostgresEngine, address: Address, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    before = await insert(postgres, rated(lane="old"), rated(lane="old"))
    caller = await asyncpg.connect(address.dsn)
    transaction = caller.transaction()
    await transaction.start()
    jobs = [rated(lane=lane) for lane in ("new", "new", "old")]
    jobs.append(rated("2/m", lane="later", delay=MINUTE))
    await postgres.insert_within(caller, jobs)
    await at_once(insert(postgres, rated(lane="new", delay=1e6)))
    assert await started(postgres, worker) == before[:1]
    clock.advance(MINUTE)
    # Nobody sees the jobs yet: the keys stay all the same.
    await postgres.prune(older_than=1e6)
    rates = {view.lane: view.rate for view in await postgres.rates()}
    assert rates == {"later": as_rate("2/m"), "new": as_rate("1/m"), "old": as_rate("1/m")}
    await transaction.commit()
    await caller.close()
    clock.advance(1)
    assert await started(postgres, worker) == [before[1], jobs[0].id]
    assert await parked(postgres, jobs[1].id)


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_callers_transaction_changes_a_rate_if_it_commits(
    postgres: PostgresEngine, address: Address, inside: Raw, clock: Clock, ends: str
) -> None:
    """The next claim knows it. Until then the rate is as it was, also for those that claim."""
    worker = await a_worker(postgres)
    ids = await insert(postgres, *(rated("1/h") for _ in range(3)))
    assert await started(postgres, worker) == ids[:1]
    caller = await asyncpg.connect(address.dsn)
    transaction = caller.transaction()
    await transaction.start()
    await postgres.insert_within(caller, [rated("2/m", delay=1e6), rated("1/m", delay=1e6)])
    assert await started(postgres, worker) == []
    assert [view.rate for view in await postgres.rates()] == [as_rate("1/h")]
    await getattr(transaction, ends)()
    await caller.close()
    assert await started(postgres, worker) == []
    rate = "1/m" if ends == "commit" else "1/h"
    assert [view.rate for view in await postgres.rates()] == [as_rate(rate)]
    clock.advance(MINUTE + 1)
    assert await started(postgres, worker) == (ids[1:2] if ends == "commit" else [])
    assert await inside.fetchval("SELECT count(*) FROM said_rate") == 0


async def test_claims_that_keep_what_callers_said_wait_for_no_other_key(
    postgres: PostgresEngine, address: Address, inside: Raw
) -> None:
    """They have locked a key already, and keys are locked in their order."""
    worker = await a_worker_that_has_claimed(postgres)
    first, second = await insert(postgres, rated(lane="a"), rated(lane="b"))
    caller = await asyncpg.connect(address.dsn)
    async with caller.transaction():
        await postgres.insert_within(caller, [rated("2/m", lane="b", delay=1e6)])
    await caller.close()
    async with inside.transaction():
        await inside.execute(KEY, "a")
        claimed = await asyncio.wait_for(postgres.exchange([], worker_id=worker, limit=10), SOON)
        assert [job.id for job in claimed.jobs] == [second]
        assert claimed.next_in is not None
        assert claimed.next_in < 1
    assert await started(postgres, worker) == [first]


async def test_all_verbs_meet_at_keys_without_a_deadlock(
    postgres: PostgresEngine,
    open_another: Opener,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who waits for whom has one order, and the invariants hold."""
    doors: list[Engine] = [postgres, *[await open_another() for _ in range(3)]]
    workers = [await a_worker(door, f"w{n}") for n, door in enumerate(doors)]
    lanes = ["a", "b", "c", "d"]
    stored: list[str] = []
    chance = random.Random(7)
    deadlocks: list[BaseException] = []

    def noted(error: BaseException) -> bool:
        if isinstance(error, asyncpg.DeadlockDetectedError):
            deadlocks.append(error)
        return may_repeat(error)

    monkeypatch.setattr(connection, "may_repeat", noted)

    async def work(number: int) -> None:
        door = doors[number]
        answer = await door.exchange([], worker_id=workers[number], limit=8)
        kinds: list[Outcome] = [
            Completed(b"1"),
            Retry(A_FAILURE, 0.0),
            Retry(A_FAILURE, 0.0, hold_lane=0.01),
        ]
        settlements = [
            Settlement(
                job.id,
                job.token,
                chance.choice(kinds),
                follow=(follower(),) if chance.random() < 0.3 else (),
            )
            for job in answer.jobs
        ]
        await door.exchange(settlements, worker_id=workers[number], limit=2)

    def follower() -> NewJob:
        job = rated(f"{chance.randint(1, 3)}/s", 2, lane=chance.choice(lanes), width=4)
        stored.append(job.id)
        return job

    async def disturb(number: int) -> None:
        door, lane = doors[number], chance.choice(lanes)
        match chance.randrange(8):
            case 0 | 1 | 2:
                await door.insert([follower() for _ in range(6)])
            case 3:
                await door.cancel(chance.sample(stored, min(len(stored), 5)))
            case 4:
                rate = chance.choice([None, as_rate("5/s", 3), as_rate("1/s")])
                await door.set_rate("default", lane, rate)
            case 5:
                await door.hold_lane("default", lane, chance.choice([0.0, 0.05]))
            case 6:
                await door.rerun(chance.sample(stored, min(len(stored), 5)))
            case 7:
                await door.promote_due(20)
                await door.prune(older_than=1e6)
                await door.expire(10)

    async def turns(number: int) -> None:
        for turn in range(40):
            await (work(number) if turn % 2 else disturb(number))
            clock.advance(0.02)

    await insert(postgres, *(rated("3/s", 2, lane=lane, width=4) for lane in lanes * 5))
    async with asyncio.timeout(60):
        await asyncio.gather(*(turns(number) for number in range(len(doors))))
    assert await postgres.audit() == []
    assert deadlocks == []
    assert (await the_job(postgres, stored[0])).id == stored[0]
