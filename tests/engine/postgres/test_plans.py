"""Every verb touches the rows it is about, whatever the statistics say about the rest."""

from __future__ import annotations

from datetime import timedelta
from hashlib import md5
from typing import Any
from uuid import UUID

import pytest

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.durable.awaited import AwaitedChildren, AwaitedEvent
from headrace.model.durable.writes import Entry, Note
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import ClaimedJob, JobFilter
from headrace.model.outcome import (
    Completed,
    Failed,
    Outcome,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
)
from headrace.model.status import Status
from headrace.model.views import RecordChange
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.plans import BATCH, Plans, explained, nodes
from tests.support.verbs import A_FAILURE, a_job, a_worker

FILL = """
ALTER TABLE job SET (autovacuum_enabled = off);
ALTER TABLE history SET (autovacuum_enabled = off);
ALTER TABLE lane SET (autovacuum_enabled = off);
INSERT INTO queue (name) VALUES ('default'), ('other') ON CONFLICT DO NOTHING;

INSERT INTO job (id, created_at, run_at, max_attempts, width, state, priority, hold, fail_on_crash,
    queue, task, source, lane, args)
SELECT gen_random_uuid(), now(), now() + CASE WHEN kind = 0 THEN interval '1 day' ELSE '0' END,
    4, 1, CASE WHEN kind = 1 AND n <= {amount} / 20 THEN 2 ELSE kind END,
    CASE WHEN kind = 1 THEN 0 ELSE n % 3 END, true, false,
    CASE WHEN n % 10 = 0 THEN 'other' ELSE 'default' END, 'work', 'code',
    CASE WHEN kind = 1 THEN 'lane:' || n % ({amount} / 20) END, '{{}}'
FROM generate_series(1, {amount}) AS n, (VALUES (0), (1), (2)) AS k (kind);

INSERT INTO job (id, created_at, run_at, max_attempts, width, state, priority, hold, fail_on_crash,
    queue, task, source, lane, args)
SELECT gen_random_uuid(), now(), now(), 4, 1, CASE WHEN n = 1 THEN 2 ELSE 1 END, 0, true, false,
    'default', 'work', 'code', 'lane:1', '{{}}'
FROM generate_series(1, least({amount}, 100000)) AS n
WHERE {amount} > 1000;

-- Children of a parent that waits for them, and many small families.
INSERT INTO job (id, created_at, run_at, max_attempts, width, state, priority, hold, fail_on_crash,
    queue, task, source, args, token, awaits)
VALUES ('{parent}', now(), now() + interval '1 day', 4, 1, 0, 0, true, false, 'default', 'work',
    'code', '{{}}', 1, '[{{"type":"children","group":"pages","left":5}}]');
INSERT INTO job (id, created_at, run_at, max_attempts, width, state, priority, hold, fail_on_crash,
    queue, task, source, args, parent, child_group)
SELECT gen_random_uuid(), now(), now(), 4, 1, 2, 0, true, false, 'default', 'work', 'code', '{{}}',
    CASE WHEN n <= {amount} / 4 THEN '{parent}' ELSE md5((n % 1000)::text)::uuid END,
    CASE WHEN n <= {amount} / 4 THEN 'pages' ELSE 'a' END
FROM generate_series(1, {amount} / 2) AS n;

-- Some have to start within the hour, and so had some that have finished.
INSERT INTO expiry (job_id, at)
SELECT id, now() + interval '1 hour' FROM (SELECT id FROM job UNION ALL SELECT id FROM history) j
WHERE right(id::text, 1) = '0';

INSERT INTO lane (queue, lane, width, used)
SELECT queue, lane, 1, count(*) FILTER (WHERE state = 2) FROM job WHERE lane IS NOT NULL
GROUP BY queue, lane;

INSERT INTO history (id, created_at, run_at, completed_at, progress, token, attempt, max_attempts,
    width, state, priority, hold, fail_on_crash, queue, task, source, args, parent)
SELECT gen_random_uuid(), now(), now(), now() - n * interval '1 millisecond', 100, 1, 1, 4, 1,
    CASE WHEN n % 1000 = 0 THEN 5 ELSE 4 END, 0, true, false, 'default', 'work', 'code', '{{}}',
    CASE WHEN n % 3 = 0 THEN md5((n % 1000)::text)::uuid END
FROM generate_series(1, {amount}) AS n;
"""
"""Many jobs made by the rules: scheduled, in lanes of 20, ready, children, finished."""
PARENT = "00000000-0000-7000-8000-000000000001"
FAMILY = str(UUID(md5(b"7").hexdigest()))


async def work_through(engine: PostgresEngine, plans: Plans, *, large: bool) -> None:
    """Call the verbs, several times each, and judge what each did."""
    worker = await a_worker(engine)
    stranger = await a_worker(engine, "stranger", tasks=("work",))
    held: list[Any] = []
    for turn in range(7):
        jobs = [a_job(lane=f"lane:{n}" if n % 2 else None, key=f"{turn}/{n}") for n in range(BATCH)]
        jobs += [a_job(delay=-1 if turn % 2 else 1e-6) for _ in range(5)]
        await engine.insert(jobs)
        plans.judge("insert", large=large)
        await engine.promote_due(BATCH)
        plans.judge("due", large=large)
        if turn in (0, 6):
            await insert_by_policy(engine, plans, turn, large=large)
        expired = [a_job(expires_in=1e-6, lane=f"x{n}" if n % 2 else None) for n in range(10)]
        await engine.insert(expired)
        plans.judge("insert with expiry", large=large)
        for queues in (None, ["default"], ["other", "default"]):
            outcomes: list[Outcome] = [
                Completed(),
                Retry(A_FAILURE, 0),
                Released(),
                Failed(A_FAILURE),
            ]
            settlements = [
                Settlement(job.id, job.token, outcomes[n % 16 % 4 if n % 4 else 0])
                for n, job in enumerate(held)
            ]
            answer = await engine.exchange(
                settlements, worker_id=worker, queues=queues, limit=BATCH
            )
            plans.judge(f"exchange {queues}", large=large)
            assert answer.refused == ()
            held = answer.jobs
        assert held
        assert len((await engine.expire(BATCH)).ids) == len(expired)
        plans.judge("expire", large=large)
        left = (await engine.exchange([], worker_id=stranger, limit=5)).jobs
        reserved = [Settlement(job.id, job.token, Reserved()) for job in left]
        left = (await engine.exchange(reserved, worker_id=stranger, limit=5)).jobs
        await engine.exchange([Settlement(job.id, job.token, Released()) for job in left])
        plans.judge("reserve", large=large)
        await engine.write_progress(
            [Note(job.id, job.token, "s", entries=(Entry("a", "b", b"1"),)) for job in held]
        )
        plans.judge("note", large=large)
        await engine.claimed_by(worker)
        await engine.take_lost(BATCH)
        plans.judge("held and lost", large=large)
        await engine.get([job.id for job in held])
        for most_bytes in (1, 1_000_000):
            await engine.get_part([job.id for job in held], most_bytes)
        plans.judge("get_part", large=large)
        await engine.entries(held[0].id)
        plans.judge("get and entries", large=large)
        await suspend_and_wake(engine, plans, held.pop(), large=large)
        await engine.cancel([job.id for job in jobs[:10]] + [job.id for job in held[:5]])
        plans.judge("cancel", large=large)
        await engine.rerun([job.id for job in jobs[:10]])
        plans.judge("rerun", large=large)
        for statuses in ((), (Status.FAILED,), (Status.PENDING,), (Status.COMPLETED,)):
            page = await engine.list_jobs(JobFilter(statuses=statuses), limit=10)
            await engine.list_jobs(JobFilter(statuses=statuses), limit=10, cursor=page.cursor)
            plans.judge(f"list {statuses}", large=large)
        await engine.list_jobs(JobFilter(key=f"{turn}/1"))
        plans.judge("list by key", large=large)
        await look_at_some(engine, plans, large=large)
        await engine.prune(older_than=3600 - turn, limit=BATCH)
        await engine.prune(keep=20, limit=BATCH if large else 1)
        # Idle lanes have no index: it would have to change whenever a lane does.
        plans.heard = [each for each in plans.heard if "l.used = 0" not in each[0]]
        plans.judge("prune", large=large)
    await engine.exchange([Settlement(job.id, job.token, Completed()) for job in held])
    plans.judge("settle", large=large)


async def insert_by_policy(engine: PostgresEngine, plans: Plans, turn: int, *, large: bool) -> None:
    """Once into an empty lane, and once for each way to deal with those who are there."""
    for policy in (
        InsertPolicy(window=60),
        InsertPolicy(window=1e-6),
        InsertPolicy(on_duplicate="debounce", max_wait=60),
        InsertPolicy(on_duplicate="replace"),
        InsertPolicy(when_full="refuse"),
        InsertPolicy(when_full="replace"),
        InsertPolicy(when_full="cancel_running"),
    ):
        lane = f"policy:{turn}:{policy.on_duplicate}:{policy.when_full}"
        for key in ("k", "k", "l"):
            job = a_job(key=f"{key}/{turn}/{policy}", lane=lane, delay=0, policy=policy)
            await engine.insert_by_policy(job)
            plans.judge(f"insert by {policy}", large=large)
    # They are in nobody's way.
    page = await engine.list_jobs(JobFilter(statuses=(Status.PENDING,)), limit=40)
    await engine.cancel([job.id for job in page.jobs if "policy" in (job.lane or "")])
    plans.heard.clear()


async def look_at_some(engine: PostgresEngine, plans: Plans, *, large: bool) -> None:
    """Lists and counts with a bound, of which nothing or nearly nothing matches."""
    ago = Clock().utcnow() - timedelta(minutes=1)
    for fields in (
        {"tasks": ("none",)},
        {"error_types": ("None",), "statuses": (Status.FAILED,)},
        {"statuses": (Status.TIMEOUT, Status.COMPLETED), "worker": "nobody"},
        {"statuses": (Status.RUNNING,)},
        {"statuses": (Status.SCHEDULED,), "tasks": ("none",)},
        {"finished_after": ago, "tasks": ("none",)},
        {"finished_before": ago},
        {"parent": PARENT, "tasks": ("none",)},
        {"parent": FAMILY, "tasks": ("none",)},
        {"group": "none"},
    ):
        filter = JobFilter(**fields)
        page = await engine.list_jobs(filter, limit=10, look=100, brief=True)
        await engine.list_jobs(filter, limit=10, look=100, brief=True, cursor=page.cursor)
        plans.judge(f"bounded list {fields}", large=large)
        await engine.count_jobs(filter, look=100)
        plans.judge(f"count {fields}", large=large)


async def suspend_and_wake(
    engine: PostgresEngine, plans: Plans, job: ClaimedJob, *, large: bool
) -> None:
    """What is new about jobs that make others and wait for them."""
    awaits = (AwaitedChildren("a"), AwaitedChildren(None, 3), AwaitedEvent("go"))
    await engine.exchange([Settlement(job.id, job.token, Snoozed(60, awaits))])
    plans.judge("suspend", large=large)
    made = [a_job(parent=job.id, group="ab"[n % 2]) for n in range(BATCH)]
    await engine.insert(made, record=RecordChange("cron", "x", b"1"))
    plans.judge("insert children", large=large)
    assert await engine.wake([job.id, PARENT]) == []
    assert await engine.wake(await engine.suspended(limit=BATCH)) == []
    plans.judge("wake in vain", large=large)
    for filter in (
        JobFilter(parent=job.id),
        JobFilter(parent=job.id, group="a", statuses=(Status.PENDING,)),
        JobFilter(parent=FAMILY),
        JobFilter(parent=FAMILY, group="a", statuses=(Status.FAILED,)),
    ):
        page = await engine.list_jobs(filter, limit=10)
        await engine.list_jobs(filter, limit=10, cursor=page.cursor)
        plans.judge(f"list {filter}", large=large)
    assert await engine.signal(job.id, "go", b"1") == "delivered"
    plans.judge("signal", large=large)
    assert await engine.wake([PARENT, job.id]) == [job.id]
    plans.judge("wake", large=large)
    await engine.cancel([job.id])
    names, record = [("event", "go"), ("event", "other")], RecordChange("cron", "x", b"2")
    assert await engine.rerun_without(job.id, names, token=job.token, record=record)
    plans.judge("rerun without", large=large)


@pytest.mark.timeout(300)
async def test_no_verb_walks_the_backlog(
    postgres: PostgresEngine, engine_url: str, raw: Raw
) -> None:
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    async with explained(engine_url) as (engine, plans):
        await work_through(engine, plans, large=False)
    for amount in (1_000, 100_000):
        await raw.execute("TRUNCATE job, history, job_key, entry, lane, lane_admission, expiry")
        await raw.execute(FILL.format(amount=amount, parent=PARENT))
        large = amount > 1_000
        # Statistics of an empty table, of the full one, and then the other way round.
        async with explained(engine_url) as (engine, plans):
            await work_through(engine, plans, large=large)
        await raw.execute("ANALYZE job; ANALYZE history; ANALYZE lane; ANALYZE expiry")
        async with explained(engine_url) as (engine, plans):
            await work_through(engine, plans, large=large)
    await raw.execute("TRUNCATE job, history, job_key, entry, lane, lane_admission, expiry")
    async with explained(engine_url) as (engine, plans):
        await work_through(engine, plans, large=True)


async def test_statistics_of_a_quiet_hour_do_not_spoil_the_next_rush(
    postgres: PostgresEngine, engine_url: str, raw: Raw
) -> None:
    """Once everything was done and the server has looked, it believes that the tables stay empty,
    however large they are: a plan that reads all of one looks as cheap as one that looks up a row.
    """
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    await raw.execute(FILL.format(amount=6_000, parent=PARENT))
    await raw.execute(
        "DELETE FROM job; DELETE FROM history; DELETE FROM lane; DELETE FROM expiry; ANALYZE"
    )
    [(rows, pages)] = await raw.fetch(
        "SELECT reltuples, relpages FROM pg_class WHERE oid = 'job'::regclass"
    )
    assert (rows, pages > 0) == (0, True)
    await raw.execute(FILL.format(amount=6_000, parent=PARENT))
    async with explained(engine_url) as (engine, plans):
        await work_through(engine, plans, large=True)


async def test_a_claim_does_not_look_at_queues_without_ready_jobs(
    postgres: PostgresEngine, engine_url: str
) -> None:
    worker = await a_worker(postgres)
    await postgres.insert([a_job(queue=f"once-{n}") for n in range(2_000)])
    while jobs := (await postgres.exchange([], worker_id=worker, limit=500)).jobs:
        await postgres.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
    await postgres.insert([a_job(queue=queue) for queue in ("busy", "other", "third")])
    async with explained(engine_url) as (engine, plans):
        for queues in (None, ["busy", "other"]):
            assert (await engine.exchange([], worker_id=worker, queues=queues, limit=1)).jobs
            assert plans.heard
            for statement, plan in plans.heard:
                for node in nodes(plan):
                    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                    assert rows * node["Actual Loops"] <= 10, (node["Node Type"], statement[:300])
            plans.heard.clear()
