"""Series over HTTP: they outlast workers and servers, and show nobody another's queues."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.client import Client
from headrace.clock import Clock
from headrace.model.fingerprint import fingerprint
from headrace.monitor.series.records import MINUTE
from tests.server.conftest import client_of, make_app
from tests.support.processes import until


async def run_jobs(app: headrace.App, *, worker: str, jobs: int) -> None:
    """Start a worker, let it complete some jobs and fail one, and stop it."""
    await app.enqueue_many(app.job("add", {"a": number, "b": 1}) for number in range(jobs))
    await app.enqueue("broken", {"password": "secret"})
    await headrace.JobOrchestrator(app, name=worker).run_until_idle()


def _begin_a_minute(clock: Clock) -> None:
    """What a worker does within one minute is one record."""
    clock.advance(MINUTE.seconds - clock.now() % MINUTE.seconds)


async def test_series_are_there_after_all_workers_and_servers_were_restarted(
    url: str, tmp_path: Path
) -> None:
    clock = Clock()
    for number in range(3):
        _begin_a_minute(clock)
        async with make_app(url, tmp_path, clock=clock) as app, client_of(app):
            await run_jobs(app, worker=f"worker{number % 2}", jobs=5)

            async def sampled(app: headrace.App = app) -> bool:
                records = await app.engine.record_list(MINUTE.kind)
                return any("(depths)" in record.key for record in records)

            await until(sampled)
            records = [each.key for each in await app.engine.record_list(MINUTE.kind)]
            clock.advance(120)
    assert len([key for key in records if "(depths)" not in key]) == 3
    async with make_app(url, tmp_path, clock=clock) as app, client_of(app) as client:
        for step in ("minute", "hour", "day"):
            page = (await client.get("/metrics/series", params={"step": step})).json()
            done = [point["outcomes"] for point in page["points"] if point["outcomes"]]
            assert sum(each["completed"] for each in done) == 15
            assert sum(each["failed"] for each in done) == 3
            assert any(point["depth"] for point in page["points"])
        [error] = page["errors"]
        assert error == {
            "task": "broken",
            "type": "ValueError",
            "fingerprint": fingerprint("ValueError", "cannot log in with [redacted]"),
            "count": 3,
        }
        [group] = (await client.get("/errors")).json()["groups"]
        assert group["fingerprint"] == error["fingerprint"]
        [last] = [point for point in page["points"][-1:] if point["run"]]
        assert 0 < last["run"]["p50"] <= last["run"]["p95"] <= last["run"]["p99"] < 60


async def test_jobs_that_end_while_the_worker_stops_are_counted(url: str, tmp_path: Path) -> None:
    app = make_app(url, tmp_path)
    begun = asyncio.Event()

    @app.task
    async def patient() -> None:
        begun.set()
        await stopping.wait()

    stopping = asyncio.Event()
    async with app:
        orchestrator = headrace.JobOrchestrator(app)
        await orchestrator.start()
        await app.enqueue("patient")
        await begun.wait()
        stop = asyncio.create_task(orchestrator.stop(grace=30))

        async def draining() -> bool:
            return not orchestrator.running

        await until(draining)
        stopping.set()
        await stop
        app.clock.advance(120)
        assert [
            each.outcomes for each in (await app.series(task="patient")).points if each.run
        ] == [{"completed": 1}]


@pytest.fixture
async def app_with_series(local_app: headrace.App) -> headrace.App:
    """An App whose worker has run some jobs."""
    _begin_a_minute(local_app.clock)
    await run_jobs(local_app, worker="one", jobs=4)
    local_app.clock.advance(120)
    return local_app


async def test_a_key_for_some_queues_sees_only_those(app_with_series: headrace.App) -> None:
    app = app_with_series
    _, everything = await create_key(app, name="all", scope="read")
    _, scans = await create_key(app, name="scans", scope="read", queues=("scans",))
    _, default = await create_key(app, name="default", scope="read", queues=("default",))

    def counted(page: httpx.Response) -> int:
        return sum(sum(each["outcomes"].values()) for each in page.json()["points"])

    for key, expected in ((everything, 5), (default, 5), (scans, 0)):
        async with client_of(app, key) as client:
            page = await client.get("/metrics/series")
            assert counted(page) == expected
            assert len(page.json()["errors"]) == (expected > 0)
            refused = await client.get("/metrics/series", params={"queue": "default"})
            assert refused.status_code == (403 if key == scans else 200)


async def test_wrong_parameters_are_refused_with_a_remedy(local: httpx.AsyncClient) -> None:
    for params in (
        {"step": "week"},
        {"since": "yesterday"},
        {"task": "no name"},
        {"tsk": "add"},
    ):
        assert (await local.get("/metrics/series", params=params)).status_code == 422, params


async def test_a_client_has_the_same_verb(app_with_series: headrace.App) -> None:
    app = app_with_series
    async with client_of(app) as http, Client(str(http.base_url)) as client:
        # Both looks are within one minute.
        _begin_a_minute(app.clock)
        since = datetime.fromtimestamp(time.time(), UTC) - timedelta(minutes=5)
        view = await client.series(task="add", since=since)
        assert view == await app.series(task="add", since=since)
        assert sum(each.outcomes.get("completed", 0) for each in view.points) == 4


async def test_fingerprints_of_what_is_hidden_are_not_told(tmp_path: Path) -> None:
    """Whoever has one could try words until they fit."""
    clock = Clock()
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with make_app(url, tmp_path, clock=clock) as app:
        for word in ("tulip", "daffodil"):
            await app.enqueue("broken", {"password": word})
        await app.enqueue("broken")
        await headrace.JobOrchestrator(app, name="one").run_until_idle()
        clock.advance(120)
        whole = (await app.series()).errors
        assert len({each.fingerprint for each in whole}) == 3
        async with client_of(app) as client:
            hidden = fingerprint("ValueError", "cannot log in with [redacted]")
            plain = fingerprint("ValueError", "it broke")
            told = (await client.get("/metrics/series")).json()["errors"]
            assert {each["fingerprint"]: each["count"] for each in told} == {hidden: 2, plain: 1}
        # Of what is not kept any more nobody knows what was hidden.
        await app.rerun((await app.list()).jobs)
        async with client_of(app) as client:
            [left] = (await client.get("/metrics/series")).json()["errors"]
            assert (left["type"], left["fingerprint"], left["count"]) == ("ValueError", "", 3)


async def test_fingerprints_of_hidden_runs_are_not_told(tmp_path: Path) -> None:
    clock = Clock()
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", clock=clock) as app:

        @app.task(queue="b", retries=0)
        async def broken() -> None:
            raise ValueError("of queue b")

        flow = app.workflow("flow", queue="a")
        flow.step("only", broken, {})
        run = await app.workflows.run("flow")
        await headrace.JobOrchestrator(app, name="one").run_until_idle()
        failed = await app.get(run.id)
        mark = fingerprint(failed.error_type or "", failed.error or "")
        clock.advance(120)
        keys = [
            (await create_key(app, name=f"{queues}", scope="read", queues=queues))[1]
            for queues in (["a"], ["a", "b"])
        ]
        told = []
        for key in keys:
            async with client_of(app, key) as client:
                found = (await client.get("/metrics/series")).json()["errors"]
                told.append({each["fingerprint"] for each in found if "workflow" in each["task"]})
        assert told == [{""}, {mark}]
