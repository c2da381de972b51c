"""What stages cost: one write each, and nothing for jobs that have none."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import headrace
from headrace.model.durable.entries import STAGE
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker

STAGES = 1_000


def counted(app: headrace.App, monkeypatch: Any) -> Counter[str]:
    """Count the writes of a worker to its engine: calls, and the notes in them."""
    counts: Counter[str] = Counter()
    engine = app.engine
    for verb in ("write_progress", "exchange", "insert", "entries"):
        monkeypatch.setattr(engine, verb, _counting(getattr(engine, verb), verb, counts))
    return counts


def _counting(call: Any, verb: str, counts: Counter[str]) -> Any:
    async def counting(*args: Any, **options: Any) -> Any:
        counts[verb] += 1
        if verb == "write_progress":
            counts["notes"] += len(args[0])
        return await call(*args, **options)

    return counting


async def step(number: int) -> int:
    return number


async def test_a_thousand_stages_cost_a_write_each(
    app: headrace.App, worker: Worker, monkeypatch: Any
) -> None:
    @app.task(timeout=None)
    async def long(ctx: headrace.Context) -> int:
        return sum([await ctx.stage("page", step, n, key=n, done="read") for n in range(STAGES)])

    counts = counted(app, monkeypatch)
    job = await long.enqueue()
    counts.clear()
    await worker(app).run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, sum(range(STAGES)))
    assert counts["notes"] <= 1.1 * STAGES
    assert counts["write_progress"] + counts["exchange"] <= 1.5 * STAGES
    assert counts["entries"] == 0, "a first attempt has nothing to read"


async def test_transient_stages_are_written_with_what_comes_next(
    app: headrace.App, worker: Worker, monkeypatch: Any
) -> None:
    @app.task(timeout=None)
    async def ingest(ctx: headrace.Context) -> None:
        for name in ("read", "cut", "count"):
            await ctx.stage(name, step, 1, transient="mask")
        await ctx.stage("mask", step, 1)
        await ctx.stage("send", step, 1, transient=True)

    counts = counted(app, monkeypatch)
    job = await ingest.enqueue()
    await worker(app).run_until_idle()
    # With that of "mask", and before the outcome; two more if 0.2 s pass meanwhile.
    assert counts["write_progress"] <= 4
    entries = await app.engine.entries(job.id, STAGE)
    assert [each.name for each in entries] == ["read", "cut", "count", "mask", "send"]


async def test_stages_of_many_jobs_at_once_share_their_calls(
    app: headrace.App, worker: Worker, monkeypatch: Any
) -> None:
    @app.task(timeout=None)
    async def long(ctx: headrace.Context) -> None:
        for n in range(50):
            await ctx.stage("page", step, n, key=n)

    await app.enqueue_many(long.job() for _ in range(20))
    counts = counted(app, monkeypatch)
    orchestrator = worker(app, max_workers=20)
    await orchestrator.run_until_idle()
    assert counts["notes"] <= 1.5 * 50 * 20
    assert counts["write_progress"] <= 0.5 * 50 * 20


async def test_jobs_without_stages_do_not_pay_for_them(
    app: headrace.App, worker: Worker, monkeypatch: Any
) -> None:
    @app.task
    async def plain(ctx: headrace.Context) -> None:
        await asyncio.sleep(0)

    await app.enqueue_many(plain.job() for _ in range(200))
    counts = counted(app, monkeypatch)
    await worker(app).run_until_idle()
    assert counts["write_progress"] == counts["entries"] == counts["insert"] == 0
