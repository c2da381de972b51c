"""Signals, retries from a stage and what is shown of them: over HTTP, the client and the CLI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

import headrace
from headrace import sync
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker
from tests.server.conftest import a_key, bearer, client_of


@pytest.fixture
async def shop(local: headrace.App) -> headrace.App:
    async def step(name: str) -> str:
        return name

    @local.task
    async def leaf(seconds: float = 0.0) -> int:
        await asyncio.sleep(seconds)
        return 1

    @local.task
    async def order(ctx: headrace.Context) -> object:
        await ctx.stage("reserving", step, "reserved", done="reserved")
        return await ctx.wait("approved", timeout=3600)

    @local.task
    async def fan(ctx: headrace.Context) -> int:
        jobs = [leaf.job() for _ in range(2)]
        late = local.tasks["leaf"].options(delay=3600).job()
        return len(await ctx.gather([*jobs, late], group="pages"))

    return local


@pytest.fixture
async def http(shop: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shop) as client:
        yield client


async def waiting(shop: headrace.App, worker: Worker, task: str = "order") -> str:
    job = await shop.enqueue(task)
    await worker(shop).run_until_idle()
    assert (await shop.get(job.id)).status is Status.SCHEDULED
    return job.id


async def test_an_event_over_http(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker)
    shown = (await http.get(f"/jobs/{job_id}")).json()
    assert shown["awaits"] == [{"type": "event", "name": "approved"}]
    [stage] = shown["stages"]
    assert (stage["name"], stage["attempt"], stage["done"]) == ("reserving", 1, "reserved")
    reasons = (await http.get(f"/jobs/{job_id}/why")).json()["reasons"]
    assert reasons[0].startswith("It waits for event 'approved'. Deliver it with: headrace jobs")
    assert reasons[1].startswith("It goes on without it at ")
    path = f"/jobs/{job_id}/events/approved"
    answer = await http.post(path, json={"by": "Ana"})
    assert answer.json() == {"job_id": job_id, "event": "approved", "delivery": "delivered"}
    assert (await http.post(path)).json()["delivery"] == "already"
    await worker(shop).run_until_idle()
    assert (await shop.get(job_id)).result == {"by": "Ana"}
    late = await http.post(f"/jobs/{job_id}/events/more")
    assert (late.status_code, late.json()["type"].rpartition(":")[2]) == (409, "job-conflict")
    unknown = await http.post("/jobs/01980000-0000-7000-8000-000000000000/events/approved")
    assert unknown.status_code == 404
    bad = await http.post(path, content=b"{", headers={"Content-Type": "application/json"})
    assert bad.status_code == 400


async def test_an_event_needs_the_right_to_write(shop: headrace.App, worker: Worker) -> None:
    job_id = await waiting(shop, worker)
    async with AsyncExitStack() as stack:
        key = await a_key(shop, "read")
        client = await stack.enter_async_context(client_of(shop))
        path = f"/jobs/{job_id}/events/approved"
        assert (await client.post(path)).status_code == 401
        assert (await client.post(path, headers=bearer(key))).status_code == 403


async def test_a_retry_from_a_stage_over_http(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker)
    early = await http.post(f"/jobs/{job_id}/retry", json={"from": "reserving"})
    assert early.status_code == 409
    await shop.signal(job_id, "approved", 1)
    await worker(shop).run_until_idle()
    wrong = await http.post(f"/jobs/{job_id}/retry", json={"from": "reserved"})
    assert (wrong.status_code, "it has: 'reserving'" in wrong.json()["detail"]) == (409, True)
    again = await http.post(f"/jobs/{job_id}/retry", json={"from": "reserving"})
    assert (again.status_code, again.json()["status"]) == (200, "pending")
    assert await shop.engine.entries(job_id) == []


async def test_a_client_signals_and_retries(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker)
    async with headrace.Client(str(http.base_url)) as client:
        with pytest.raises(headrace.InvalidArguments, match="pass plain data"):
            await client.signal(job_id, "approved", object())
        assert await client.signal(job_id, "approved", {"by": "Ben"}) == "delivered"
        assert await client.signal(job_id, "approved") == "already"
        await worker(shop).run_until_idle()
        assert await client.result(job_id) == {"by": "Ben"}
        again = await client.retry(job_id, from_stage="reserving")
        assert again.status is Status.PENDING


async def test_children_are_listed_and_cancelled_by_their_parent(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker, "fan")
    stranger = await shop.enqueue("leaf", delay=3600)
    async with headrace.Client(str(http.base_url)) as client:
        page = await client.list(headrace.JobFilter(parent=job_id, group="pages"))
        assert [job.parent for job in page.jobs] == [job_id] * 3
        assert (await client.list(headrace.JobFilter(parent=job_id, group="other"))).jobs == []
        answer = await client.bulk("cancel", headrace.JobFilter(parent=job_id, tasks=("leaf",)))
        assert (answer.matched, answer.changed) == (1, 1)
    assert (await shop.get(stranger.id)).status is Status.SCHEDULED
    wrong = await http.get("/jobs", params={"parent": "nobody"})
    assert wrong.status_code == 422


async def test_code_without_a_loop_signals(local: headrace.App) -> None:
    @local.task
    async def order(ctx: headrace.Context) -> object:
        return await ctx.wait("approved")

    job = await order.enqueue()

    def signal() -> str:
        with sync.App(local.settings.url) as jobs:
            return jobs.signal(job.id, "approved", 3)

    assert await asyncio.to_thread(signal) == "delivered"


async def test_why_counts_the_children(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker, "fan")
    reasons: list[Any] = (await http.get(f"/jobs/{job_id}/why")).json()["reasons"]
    assert reasons[0] == "It waits for 1 child of group 'pages'."


async def test_a_bulk_cancel_reaches_children(
    shop: headrace.App, http: httpx.AsyncClient, worker: Worker
) -> None:
    job_id = await waiting(shop, worker, "fan")
    asked = {"action": "cancel", "filter": {"task": ["fan"]}}
    assert (await http.post("/jobs/bulk", json=asked)).json()["changed"] == 1
    children = (await shop.list(headrace.JobFilter(parent=job_id))).jobs
    assert sorted(child.status.value for child in children) == [
        "cancelled",
        "completed",
        "completed",
    ]
