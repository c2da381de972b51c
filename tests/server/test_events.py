"""Server-sent events: nothing is missed, nothing is left behind."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

import headrace
from headrace.admin.keys import revoke_key
from headrace.monitor.changes import all_jobs_scan, subscribers, watch
from headrace.server.auth.keys import LONGEST_TRUST
from headrace.server.http import sse
from headrace.server.service import Service
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs
from tests.server.sse_reader import Stream
from tests.support.processes import until

LIFE = ["pending", "running", "completed"]


def many(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """The same server for somebody with any number of connections."""
    return httpx.AsyncClient(
        base_url=client.base_url,
        headers=client.headers,
        timeout=60,
        limits=httpx.Limits(max_connections=None),
    )


async def test_the_life_of_a_job_is_told_to_its_end(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    job = await app.enqueue("add", {"a": 1, "b": 2})
    async with Stream(client, f"/jobs/{job.id}/events") as stream:
        assert stream.response is not None
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        await until(lambda: stream.statuses() == ["pending"])
        await run_jobs(app)
        await stream.ended()
    assert stream.statuses() == LIFE
    assert stream.events[-1].job["result"] == 3
    async with Stream(client, f"/jobs/{job.id}/events") as late:
        await late.ended()
    assert late.statuses() == ["completed"]


async def test_all_jobs_are_told_from_birth_to_end(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    before = await app.enqueue("add", {"a": 0, "b": 0})
    task = app.tasks["add"]
    async with Stream(client, "/events") as all_, Stream(client, "/events?task=broken") as some:
        stored = await app.enqueue_many([task.job(a=n, b=1) for n in range(200)])
        broken = await app.enqueue("broken")
        await run_jobs(app)
        jobs = [*stored, before]
        await until(lambda: all(all_.statuses(job.id)[-1:] == ["completed"] for job in jobs))
        await until(lambda: some.statuses(broken.id)[-1:] == ["failed"])
    for job in stored:
        assert all_.statuses(job.id) == LIFE
    assert all_.statuses(before.id) == LIFE[1:]
    assert some.statuses() == ["pending", "running", "failed"]
    assert len({event.id for event in all_.events}) == len(all_.events)


async def test_fifty_streams_miss_nothing(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    jobs = await app.enqueue_many([app.tasks["add"].job(a=n, b=1) for n in range(50)])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(many(local))
        opened = [
            await stack.enter_async_context(Stream(client, f"/jobs/{job.id}/events"))
            for job in jobs
        ]
        await run_jobs(app)
        await asyncio.gather(*(stream.ended() for stream in opened))
    for stream in opened:
        assert stream.statuses() == LIFE


async def test_retries_and_progress_are_told(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    calls: list[int] = []

    @app.task(retry=headrace.RetryPolicy(retries=2, base=0.1, factor=1))
    async def flaky(ctx: headrace.Context) -> None:
        calls.append(ctx.attempt)
        if len(calls) < 3:
            raise RuntimeError("not yet")

    job = await app.enqueue("flaky")
    async with Stream(local, f"/jobs/{job.id}/events") as stream, headrace.JobOrchestrator(app):
        await stream.ended()
    again = ["running", "scheduled", "pending"]
    assert stream.statuses() == ["pending", *again, *again, "running", "completed"]
    slow = await app.enqueue("slow")
    async with (
        Stream(local, f"/jobs/{slow.id}/events") as stream,
        headrace.JobOrchestrator(app) as orchestrator,
    ):
        await until(lambda: len({event.job["progress"] for event in stream.events}) > 3)
        await app.cancel(slow.id)
        await stream.ended()
        await orchestrator.stop(grace=0)
    assert stream.statuses() == ["pending", "running", "cancelled"]


async def test_one_who_comes_back_is_told_what_was_missed(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    job = await app.enqueue("add", {"a": 1, "b": 2})
    async with Stream(local, f"/jobs/{job.id}/events") as first, Stream(local, "/events") as all_:
        await until(lambda: first.events)
        other = await app.enqueue("add", {"a": 3, "b": 4})
        await until(lambda: all_.events)
    await run_jobs(app)
    known = {"Last-Event-ID": str(first.events[-1].id)}
    async with Stream(local, f"/jobs/{job.id}/events", **known) as again:
        await again.ended()
    assert again.statuses() == ["running", "completed"]
    nothing_new = {"Last-Event-ID": str(again.events[-1].id)}
    async with Stream(local, f"/jobs/{job.id}/events", **nothing_new) as done:
        await done.ended()
    assert done.events == []
    known = {"Last-Event-ID": str(all_.events[-1].id)}
    async with Stream(local, "/events", **known) as rest:
        await until(lambda: rest.statuses(other.id) == ["running", "completed"])
        await until(lambda: rest.statuses(job.id) == ["running", "completed"])
    async with Stream(local, "/events", **{"Last-Event-ID": "deadbeef.17"}) as gap:
        assert [event.kind for event in gap.events] == ["gap"]


async def test_heartbeats_keep_a_silent_stream_open(
    local: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with Stream(local, f"/jobs/{job.id}/events") as stream:
        await until(lambda: stream.comments.count("still here") >= 3)


async def test_a_revoked_key_ends_its_streams(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.1)
    key = await a_key(local_app, "read")
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with (
        client_of(local_app, key) as client,
        Stream(client, f"/jobs/{job.id}/events") as stream,
    ):
        await until(lambda: stream.events)
        await revoke_key(local_app, key.split("_")[1])
        await stream.ended()


@pytest.mark.parametrize("path", ["/events", "/jobs/{}/events"])
async def test_a_revoked_key_ends_its_streams_while_there_is_something_to_tell(
    local_app: headrace.App, path: str
) -> None:
    """By the clock, not by silence."""
    key = await a_key(local_app, "read")
    job = await local_app.enqueue("slow", {})
    worker = asyncio.create_task(headrace.JobOrchestrator(local_app).run_until_idle())
    async with (
        client_of(local_app, key) as client,
        Stream(client, path.format(job.id)) as stream,
    ):
        await until(lambda: len(stream.events) > 3)
        began = time.monotonic()
        await revoke_key(local_app, key.split("_")[1])
        # The job tells its progress all the time until then, for twenty seconds at least.
        await stream.ended()
        assert time.monotonic() - began < LONGEST_TRUST + 1.0
        assert (await local_app.get(job.id)).status == "running"
    await local_app.cancel(job.id)
    await worker


async def test_one_who_leaves_leaves_nothing(
    local_app: headrace.App, stack: AsyncExitStack
) -> None:
    services: list[Service] = []
    made = Service.__init__

    def remember(self: Service, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        services.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "__init__", remember)
        patch.setattr(watch, "LINGER", 0.1)
        client = await stack.enter_async_context(client_of(local_app))
        [service] = services
        job = await local_app.enqueue("add", {"a": 1, "b": 2})
        for _ in range(3):
            async with (
                Stream(client, f"/jobs/{job.id}/events") as one,
                Stream(client, "/events") as two,
            ):
                assert not one.over
                assert not two.over
                await until(lambda: len(service.subscribers) == 2)
            await until(lambda: not service.subscribers)
        changes = service.changes
        await until(lambda: changes._task is None or changes._task.done(), "the end of the look")
        assert not changes._known
        assert not changes._everything
        assert not changes._kept


async def test_a_burst_is_told_to_its_end(
    local: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many changes one look finds, those who read are told all of them."""
    monkeypatch.setattr(subscribers, "LONGEST_QUEUE", 1_000)
    jobs = [local_app.tasks["add"].job(a=n, b=1) for n in range(500)]
    async with Stream(local, "/events") as stream:
        await local_app.enqueue_many(jobs)
        await run_jobs(local_app)
        await until(lambda: len(stream.events) >= 3 * len(jobs) or "gap" in stream.kinds)
    assert set(stream.kinds) == {"job"}
    statuses = Counter(event.status for event in stream.events)
    assert statuses == dict.fromkeys(LIFE, len(jobs))


async def test_one_who_is_too_slow_is_told_of_a_gap_and_goes_on(
    local: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribers, "LONGEST_QUEUE", 5)
    add = local_app.tasks["add"]
    async with Stream(local, "/events") as stream:
        await local_app.enqueue_many([add.job(a=n, b=1) for n in range(50)])
        await run_jobs(local_app)
        await until(lambda: "gap" in stream.kinds)
        # On the same connection, and one who loses it goes on after the gap.
        last = await local_app.enqueue("add", {"a": 1, "b": 1})
        await until(lambda: stream.statuses(last.id) == ["pending"])
        gap = next(event for event in stream.events if event.kind == "gap")
    monkeypatch.setattr(subscribers, "LONGEST_QUEUE", 500)
    async with Stream(local, "/events", **{"Last-Event-ID": str(gap.id)}) as again:
        await until(lambda: again.statuses(last.id) == ["pending"])
    assert "gap" not in again.kinds


async def test_more_than_can_be_watched_is_a_gap(
    local: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_jobs_scan, "MOST_HELD", 30)
    add = local_app.tasks["add"]
    async with Stream(local, "/events") as stream:
        jobs = await local_app.enqueue_many([add.job(a=n, b=1) for n in range(100)])
        await until(lambda: stream.kinds == ["gap"])
        # What comes after the gap is complete: these are known from it on.
        await run_jobs(local_app)
        await until(lambda: all(stream.statuses(job.id) == LIFE[1:] for job in jobs))
    monkeypatch.setattr(all_jobs_scan, "MOST_HELD", 10_000)
    monkeypatch.setattr(all_jobs_scan, "MOST_KNOWN", 20)
    monkeypatch.setattr(all_jobs_scan, "PARTIAL_SECONDS", 0.5)
    async with Stream(local, "/events") as stream:
        await local_app.enqueue_many([add.job(a=n, b=1) for n in range(60)])
        await until(lambda: stream.kinds.count("job") >= 60)
        await until(lambda: stream.kinds.count("gap") >= 2, "a gap again and again")


async def test_an_id_comes_before_the_first_event(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    async with Stream(local, "/events") as stream:
        await until(lambda: stream.last_id)
        assert stream.events == []
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with Stream(local, "/events", **{"Last-Event-ID": str(stream.last_id)}) as again:
        await until(lambda: again.statuses(job.id) == ["pending"])
        assert again.kinds == ["job"]


async def test_one_who_comes_back_after_nobody_listened_is_told_of_a_gap(
    local: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LINGER", 0.0)
    ends: list[int] = []
    end_scan = watch.ChangeWatch._end_scan

    def ended(self: watch.ChangeWatch) -> None:
        end_scan(self)
        ends.append(1)

    monkeypatch.setattr(watch.ChangeWatch, "_end_scan", ended)
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with Stream(local, "/events") as stream:
        await until(lambda: stream.last_id)
    await until(lambda: ends, "the end of the look")
    await run_jobs(local_app)
    async with Stream(local, "/events", **{"Last-Event-ID": str(stream.last_id)}) as again:
        await until(lambda: again.kinds == ["gap"])
        assert again.last_id != stream.last_id
    assert again.statuses(job.id) == []


async def test_no_more_streams_than_the_process_can_carry(local_app: headrace.App) -> None:
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with (
        client_of(local_app, most_streams=1) as client,
        Stream(client, f"/jobs/{job.id}/events"),
    ):
        refused = await client.get("/events")
        problem(refused, 503, "too-many-streams")
        assert refused.headers["retry-after"]


async def test_a_key_for_some_queues_follows_only_those(local_app: headrace.App) -> None:
    key = await a_key(local_app, "read", queues=["scans"])
    own = await local_app.enqueue("add", {"a": 1, "b": 1}, queue="scans")
    foreign = await local_app.enqueue("add", {"a": 1, "b": 1})
    async with client_of(local_app) as client:
        problem(await client.get(f"/jobs/{foreign.id}/events", headers=bearer(key)), 404)
        problem(await client.get("/events?queue=default", headers=bearer(key)), 403)
        async with Stream(client, "/events", **bearer(key)) as stream:
            await run_jobs(local_app)
            await until(lambda: stream.statuses(own.id)[-1:] == ["completed"])
        assert {event.job["queue"] for event in stream.events} == {"scans"}
