"""What only PostgreSQL has to show of rates: pairs of verbs, and what they cost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.insert_policy import InsertPolicy
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Completed, Failed, Released, Retry, Settlement
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.plans import explained
from tests.engine.postgres.test_plans import FILL, PARENT
from tests.engine.rate_words import MINUTE, insert, parked, rated, started
from tests.support.processes import until
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, the_job


@pytest.fixture
async def inside(postgres: PostgresEngine, raw: Raw) -> Raw:
    """The stranger, in our schema."""
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    return raw


@pytest.mark.parametrize("left", [{"free": 0}, {"queues": ["other"]}])
async def test_others_are_told_of_parked_jobs_that_are_due(
    postgres: PostgresEngine, open_another: Opener, clock: Clock, left: dict[str, Any]
) -> None:
    """The claim that makes them ready leaves them: it has no free slot, or other queues."""
    other = await open_another()
    worker = await a_worker(postgres)
    await insert(postgres, rated(), rated())
    await started(postgres, worker)
    heard = asyncio.Event()
    stop = await other.listen(heard.set, lambda _: None)
    clock.advance(MINUTE + 1)
    heard.clear()
    assert await started(postgres, worker, **left) == []
    await asyncio.wait_for(heard.wait(), 10)
    stop()


async def test_a_claim_that_began_before_the_first_rate_starts_none_of_its_jobs(
    postgres: PostgresEngine, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    [(made,)] = await inside.fetch(
        "SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.proname LIKE 'open_queues%'"
        " AND p.pronamespace = current_schema()::regnamespace"
    )
    # It is called when a claim has found that there is no rate.
    await inside.execute(made.replace("BEGIN", "BEGIN PERFORM pg_advisory_xact_lock(1);", 1))
    await inside.execute("SELECT pg_advisory_lock(1)")
    claiming = asyncio.create_task(started(postgres, worker))
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    await until(lambda: _holds(inside, waiting), "the claim")
    first, second = await insert(postgres, rated(), rated())
    await inside.execute("SELECT pg_advisory_unlock(1)")
    assert await claiming == []
    assert await started(postgres, worker) == [first]
    assert await parked(postgres, second)


async def _holds(raw: Raw, query: str) -> bool:
    [(found,)] = await raw.fetch(query)
    return bool(found)


async def test_a_job_that_was_stored_while_a_claim_went_on_counts_from_then(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """It is shown to have started when it was stored, so the next may start an interval later."""
    worker = await a_worker(postgres)
    first, second = await insert(postgres, rated(), rated())
    later = "UPDATE job SET created_at = created_at + interval '0.9 s' WHERE id = $1"
    await inside.execute(later, first)
    assert await started(postgres, worker) == [first]
    began = (await the_job(postgres, first)).started_at
    assert began == (await the_job(postgres, first)).created_at
    assert (await the_job(postgres, second)).run_at - began >= timedelta(seconds=MINUTE)


async def test_claims_that_begin_behind_a_parked_job_find_it(
    postgres: PostgresEngine, clock: Clock
) -> None:
    """They do while old rows pile up in front (see ClaimCursor); a parked job is in front."""
    worker = await a_worker(postgres)
    _, second = await insert(postgres, rated(), rated())
    await started(postgres, worker)
    cursor = postgres._cursors[None]
    for _ in range(2):
        cursor.scanned(monotonic(), start=0, first_seq=1_000, short=False, seconds=100.0)
    assert cursor.start(monotonic()) == 1_000
    clock.advance(MINUTE + 1)
    assert await started(postgres, worker) == [second]


async def test_an_outcome_may_hold_a_lane_and_have_followers(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    _, second = await insert(postgres, rated(burst=5), rated(burst=5))
    [job] = await claim(postgres, worker, 1)
    follow = (rated("3/m", lane="a"), rated(burst=5))
    outcome = Failed(A_FAILURE, hold_lane=MINUTE)
    answer = await postgres.exchange(
        [Settlement(job.id, job.token, outcome, follow=follow)], worker_id=worker, limit=10
    )
    assert [each.id for each in answer.jobs] == [follow[0].id]
    assert answer.next_in == pytest.approx(MINUTE, abs=5)
    views = {view.lane: view for view in await postgres.rates()}
    assert views["a"].rate == as_rate("3/m")
    assert views["h"].held_until is not None
    clock.advance(MINUTE + 1)
    assert await started(postgres, worker) == [second]


async def test_an_outcome_that_comes_with_a_claim_holds_its_lane_first(
    postgres: PostgresEngine,
) -> None:
    worker = await a_worker(postgres)
    await insert(postgres, rated(burst=5), rated(burst=5))
    [job] = await claim(postgres, worker, 1)
    hold = Settlement(job.id, job.token, Retry(A_FAILURE, 0.0, hold_lane=MINUTE))
    answer = await postgres.exchange([hold], worker_id=worker, limit=10)
    assert (answer.refused, answer.jobs) == ((), [])
    assert answer.next_in == pytest.approx(MINUTE, abs=5)


async def test_a_parked_job_does_not_set_the_width_of_its_lane_again(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    _, second, third = await insert(postgres, *(rated(width=9) for _ in range(3)))
    await started(postgres, worker)
    await insert(postgres, rated(width=4))
    clock.advance(MINUTE + 1)
    assert (await postgres.promote_due(10)).moved == 1
    assert await postgres.rerun([third]) == [third]
    assert [view.width for view in await postgres.lanes()] == [4]
    assert await started(postgres, worker) == [second]


async def test_a_lane_that_is_cleared_of_parked_jobs_starts_the_new_one_in_time(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    ids = await insert(postgres, *(rated(width=5) for _ in range(5)))
    assert await started(postgres, worker) == ids[:1]
    policy = InsertPolicy(when_full="cancel_running")
    answer = await postgres.insert_by_policy(rated(width=5, policy=policy))
    assert answer.inserted is not None
    assert set(answer.cancelled) == set(ids[1:])
    assert await started(postgres, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(postgres, worker) == [answer.inserted.id]


async def test_people_see_with_psql_that_a_job_is_parked(
    postgres: PostgresEngine, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    first, second = await insert(postgres, rated(), rated())
    await started(postgres, worker)
    rows = await inside.fetch("SELECT id::text, status, parked FROM jobs ORDER BY id")
    assert [tuple(row) for row in rows] == [(first, "running", False), (second, "scheduled", True)]


async def test_where_nothing_has_a_rate_nobody_looks_for_more_than_that(
    postgres: PostgresEngine, engine_url: str
) -> None:
    worker = await a_worker(postgres)
    await insert(postgres, a_job(), a_job(lane="l"))
    async with explained(engine_url) as (engine, plans):
        jobs = (await engine.exchange([], worker_id=worker, limit=5)).jobs
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
        about = [statement for statement, _ in plans.heard if "rate" in statement]
    assert len(jobs) == 2
    # One look in the statement that reads the worker; the other columns are those of every job.
    looks = [each for each in about if "FROM rate" in each]
    assert len(looks) == 1
    assert "FROM worker w" in looks[0]


async def test_keys_are_looked_up_whatever_else_there_is(
    postgres: PostgresEngine, engine_url: str, inside: Raw
) -> None:
    """Many jobs, many keys, and many that are parked: nobody walks over them."""
    await inside.execute(FILL.format(amount=6_000, parent=PARENT))
    await inside.execute(
        """
        INSERT INTO rate (queue, lane, count, per, burst, tat)
        SELECT queue, lane, 1, 3600, 1, date_part('epoch', now()) + 60 FROM lane;
        INSERT INTO rate (queue, lane, count, per, burst)
        SELECT 'default', 'other:' || n, 1, 3600, 1 FROM generate_series(1, 5000) AS n;
        UPDATE job SET rate = '{1,3600,1,1,1}' WHERE lane IS NOT NULL;
        UPDATE job SET state = 0, parked = 1, pinned = true, run_at = now() + interval '1 hour'
        WHERE lane IS NOT NULL AND state = 2 AND right(lane, 1) <> '7';
        """
    )
    worker = await a_worker(postgres)
    for turn in range(2):
        async with explained(engine_url) as (engine, plans):
            for n in range(3):
                lane = f"lane:{n}7"
                await engine.insert([rated("1/h", lane=lane, width=1) for _ in range(10)])
                plans.judge("insert", large=True)
                answer = await engine.exchange([], worker_id=worker, limit=20)
                plans.judge("exchange", large=True)
                held = [Settlement(each.id, each.token, Released()) for each in answer.jobs]
                await engine.exchange(held, worker_id=worker, queues=["default"], limit=20)
                plans.judge("exchange of one queue", large=True)
                await engine.set_rate("default", lane, as_rate(f"{n + 1}/m"))
                await engine.set_rate("default", lane, None)
                plans.judge("set_rate", large=True)
                await engine.hold_lane("default", lane, 1)
                plans.judge("hold_lane", large=True)
                await engine.promote_due(50)
                plans.judge("due", large=True)
        if turn == 0:
            await inside.execute("ANALYZE")
    await inside.execute(
        "TRUNCATE job, history, job_key, entry, lane, lane_admission, expiry, rate"
    )
