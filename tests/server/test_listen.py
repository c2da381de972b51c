"""Alone, mounted in another application, without its engine, as a program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

import headrace
import headrace.server
from headrace.errors import MissingDriver
from headrace.server.listen import GRACE, HttpServer, listening
from tests.server.conftest import a_key, address_of, bearer, client_of, make_app, problem, run_jobs
from tests.server.sse_reader import Stream
from tests.support.processes import Processes, until
from tests.support.servers import PostgresServer, RedisServer, postgres_binaries, redis_binaries


async def test_it_can_be_mounted_in_another_application(local_app: headrace.App) -> None:
    mine = FastAPI()

    @mine.get("/")
    async def home() -> dict[str, str]:
        return {"mine": "yes"}

    mine.mount("/background", headrace.server.create(local_app))
    transport = httpx.ASGITransport(mine, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/")).json() == {"mine": "yes"}
        body = {"task": "add", "args": {"a": 1, "b": 2}}
        stored = await client.post("/background/jobs", json=body)
        assert stored.status_code == 202
        place = stored.headers["location"]
        assert place.startswith("/background/jobs/")
        await run_jobs(local_app)
        assert (await client.get(place)).json()["result"] == 3
        problem(await client.get("/background/nope"), 404, "not-found")
        assert (await client.get("/nope")).headers["content-type"] == "application/json"
        document = (await client.get("/background/openapi.json")).json()
        assert document["servers"] == [{"url": "/background"}]
        key = await a_key(local_app)
        await asyncio.sleep(0)

        async def closed() -> bool:
            return (await client.get("/background/jobs")).status_code == 401

        await until(closed)
        assert (await client.get("/background/jobs", headers=bearer(key))).status_code == 200


def test_it_serves_one_event_loop_after_the_other(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path)
    api = headrace.server.create(app)

    async def use() -> None:
        transport = httpx.ASGITransport(api, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body = {"task": "add", "args": {"a": 1, "b": 2}}
            assert (await client.post("/jobs", json=body)).status_code == 202
            assert (await client.get("/audit")).status_code == 200
            assert (await client.get("/metrics")).status_code == 200
        await app.close()

    asyncio.run(use())
    asyncio.run(use())


@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_while_the_engine_is_away_it_says_so_and_then_goes_on(
    kind: str, tmp_path: Path
) -> None:
    server = (
        PostgresServer(postgres_binaries()["postgres"])
        if kind == "postgres"
        else RedisServer(redis_binaries()["redis"])
    )
    server.start()
    try:
        async with make_app(server.url, tmp_path) as app, client_of(app) as client:
            body = {"task": "add", "args": {"a": 1, "b": 2}}
            job = (await client.post("/jobs", json=body)).json()["job_id"]
            async with Stream(client, f"/jobs/{job}/events") as stream:
                await until(lambda: stream.events)
                server.kill()

                async def away() -> bool:
                    answer = await client.get(f"/jobs/{job}")
                    if answer.status_code != 503:
                        return False
                    problem(answer, 503, "engine-unavailable")
                    assert int(answer.headers["retry-after"]) >= 1
                    return True

                await until(away)
                refused = await client.post("/jobs", json=body)
                problem(refused, 503, "engine-unavailable")

                async def unready() -> bool:  # what it has read may be a second old
                    return (await client.get("/readyz")).status_code == 503

                await until(unready)
                assert (await client.get("/healthz")).status_code == 200
                server.start()

                async def back() -> bool:
                    return (await client.get("/readyz")).status_code == 200

                await until(back)
                assert (await client.get(f"/jobs/{job}")).status_code == 200
                assert (await client.post("/jobs", json=body)).status_code == 202
                await run_jobs(app)
                # The stream has waited, and misses nothing.
                await stream.ended()
                assert stream.statuses() == ["pending", "running", "completed"]
    finally:
        server.destroy()


async def test_secrets_are_not_shown(local: httpx.AsyncClient, local_app: headrace.App) -> None:
    body = {"task": "broken", "args": {"password": "hunter22"}, "meta": {"API_KEY": "abc"}}
    stored = await local.post("/jobs", json=body)
    assert "hunter22" not in stored.text
    assert stored.json()["args"] == {"password": "[redacted]"}
    assert stored.json()["meta"] == {"API_KEY": "[redacted]"}
    await run_jobs(local_app)
    job_id = stored.json()["job_id"]
    for path in (f"/jobs/{job_id}", "/jobs", f"/jobs/{job_id}/result", f"/jobs/{job_id}/why"):
        told = await local.get(path)
        assert "hunter22" not in told.text, path
    shown = (await local.get(f"/jobs/{job_id}")).json()
    assert shown["error_message"] == "cannot log in with [redacted]"
    async with Stream(local, f"/jobs/{job_id}/events") as stream:
        await stream.ended()
    assert "hunter22" not in json.dumps([event.job for event in stream.events])
    # What the handler was given is whole.
    assert (await local_app.get(job_id)).args == {"password": "hunter22"}
    unfit = {"task": "broken", "args": {"password": "hunter22", "more": 1}}
    refused = await local.post("/jobs", json=unfit)
    assert problem(refused, 422)["detail"].startswith('task "broken"')
    assert "hunter22" not in refused.text
    escaped = b'{"task": "broken", "args": {"p\\u0061ssword": "hunter22"}}'
    headers = {"Content-Type": "application/json"}
    assert "hunter22" not in (await local.post("/jobs", content=escaped, headers=headers)).text


async def test_which_fields_are_secret_can_be_chosen(local_app: headrace.App) -> None:
    async with client_of(local_app, redact=("platform",)) as client:
        args = {"platform": "web", "document": {"title": "x"}}
        job = (await client.post("/jobs", json={"task": "scan", "args": args})).json()
        assert job["args"]["platform"] == "[redacted]"
        job = (
            await client.post("/jobs", json={"task": "broken", "args": {"password": "p"}})
        ).json()
        assert job["args"]["password"] == "p"


async def test_a_server_stops_although_streams_are_open(local_app: headrace.App) -> None:
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with listening(local_app, port=0) as url, httpx.AsyncClient(base_url=url) as client:
        stream = Stream(client, f"/jobs/{job.id}/events")
        await stream.__aenter__()
        began = time.monotonic()
    assert time.monotonic() - began < GRACE, "it has waited for the stream"
    await stream.__aexit__()


async def test_a_server_stops_although_somebody_waits_for_a_result(
    local_app: headrace.App,
) -> None:
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with httpx.AsyncClient(timeout=60) as client:
        async with listening(local_app, port=0) as url:
            path = f"{url}/jobs/{job.id}/result?timeout=50"
            waiting = asyncio.create_task(client.get(path))
            await until(lambda: local_app._results._waiters, "the wait")
            began = time.monotonic()
        assert time.monotonic() - began < GRACE, "it has waited for the result"
        answer = await waiting
    # As if the time were over: who waits asks again, when the server is back.
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")


def test_signals_are_left_to_the_program() -> None:
    assert "capture_signals" in vars(HttpServer)


def test_without_fastapi_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("headrace.server.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingDriver, match=r"headrace\[server\]"):
        headrace.server.create(headrace.App("sqlite:///:memory:"))


SHOP = """
import headrace

app = headrace.App()


@app.task
async def add(a: int, b: int) -> int:
    return a + b
"""


async def test_the_server_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    with Processes(tmp_path) as processes:
        server = processes.headrace("server", "--app", "shop", "--port", "0", "--json")
        url = await address_of(server)
        async with httpx.AsyncClient(base_url=url) as client:
            stored = await client.post("/jobs", json={"task": "add", "args": {"a": 1, "b": 2}})
            assert stored.status_code == 202
            made = processes.headrace("keys", "create", "ci", "--scope", "read", "--json")
            assert await made.ended() == 0
            key = json.loads(made.said)

            async def closed() -> bool:
                return (await client.get("/jobs")).status_code == 401

            await until(closed)
            assert (await client.get("/jobs", headers=bearer(key["secret"]))).status_code == 200
            gone = processes.headrace("keys", "revoke", key["id"])
            assert await gone.ended() == 0

            async def refused() -> bool:
                answer = await client.get("/jobs", headers=bearer(key["secret"]))
                return answer.status_code == 401

            await until(refused)
            listed = processes.headrace("keys", "list")
            assert await listed.ended() == 0
            assert "revoked" in listed.said
            assert key["secret"] not in listed.said
        os.kill(server.pid, signal.SIGTERM)
        assert await server.ended() == 0
        bad = processes.headrace("keys", "create", "--scope", "root")
        assert await bad.ended() == 2
        assert "scope 'root' is unknown" in bad.said


async def test_the_program_refuses_to_be_reached_without_keys(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    with Processes(tmp_path) as processes:
        server = processes.headrace("server", "--app", "shop", "--host", "0.0.0.0", "--port", "0")
        assert await server.ended() == 2
        assert "headrace keys create" in server.said
