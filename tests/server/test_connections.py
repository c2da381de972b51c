"""Connections that are silent or half-sent are closed; others get in meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

import headrace
from headrace.server.connections import OTHER_FILES, ConnectionLimits
from headrace.server.http import incoming_bodies
from tests.server.conftest import a_key, address_of, bearer, client_of, make_app
from tests.support.processes import Processes, until

SOON = ConnectionLimits(header_seconds=0.3)
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def line_to(client: httpx.AsyncClient, sent: bytes = b"") -> AsyncIterator[Line]:
    """A plain connection that has sent something."""
    url = client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(sent)
        await writer.drain()
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end of a connection, which has to come."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


HEADER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /heal", HEADER, HEADER + b"X-Long: ", HEADER + b"\r\n" + b"GET /"],
    ids=["nothing", "half a line", "half of the headers", "half a header", "after a request"],
)
async def test_a_request_has_to_begin_in_time(local_app: headrace.App, sent: bytes) -> None:
    async with client_of(local_app, limits=SOON) as client, line_to(client, sent) as (reader, _):
        await rest_of(reader)


async def test_one_who_drips_is_closed_too(local_app: headrace.App) -> None:
    async with client_of(local_app, limits=SOON) as client, line_to(client) as (reader, writer):

        async def drip() -> None:
            with contextlib.suppress(OSError):
                for byte in HEADER * 1_000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        await rest_of(reader)
        dripping.cancel()


@pytest.mark.parametrize("length", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
async def test_a_body_has_to_come_in_time(local_app: headrace.App, length: bytes) -> None:
    body = b"" if b"chunked" in length else b'{"task"'
    async with (
        client_of(local_app, body_seconds=0.3) as client,
        line_to(client, POST + length + b"\r\n\r\n" + body) as (reader, _),
    ):
        answer = await rest_of(reader)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request-timeout" in answer


async def test_a_body_that_nobody_waits_for_is_not_waited_for(local_app: headrace.App) -> None:
    await a_key(local_app)
    sent = POST + b"Content-Length: 100\r\n\r\nhalf"
    async with (
        client_of(local_app, limits=SOON, body_seconds=0.3) as client,
        line_to(client, sent) as (reader, _),
    ):
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 401")


async def test_a_slow_body_that_comes_is_taken(local_app: headrace.App) -> None:
    body = json.dumps({"task": "add", "args": {"a": 1, "b": 2}}).encode()
    head = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with client_of(local_app, limits=SOON) as client, line_to(client, head) as line:
        reader, writer = line
        for part in (body[:5], body[5:20], body[20:]):
            await asyncio.sleep(0.2)
            writer.write(part)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 202")


async def test_a_body_is_not_late_because_its_reader_is() -> None:
    """What a handler does between two parts is not the time of the one who sends them."""
    parts = [b"a", b"b", b"c"]
    got: list[bytes] = []

    async def receive() -> Message:
        await asyncio.sleep(0)  # it is read from a connection
        return {"type": "http.request", "body": parts[len(got)], "more_body": len(got) < 2}

    async def reads(_: Scope, receive: Receive, __: Send) -> None:
        while len(got) < len(parts):
            got.append((await receive())["body"])
            await asyncio.sleep(0.25)  # longer than a body may take

    async def send(_: Message) -> None: ...

    headers = [(b"transfer-encoding", b"chunked")]
    await incoming_bodies.IncomingBodies(reads, seconds=0.2)(
        {"type": "http", "headers": headers}, receive, send
    )
    assert got == parts


async def test_streams_and_slow_answers_are_not_cut_off(local_app: headrace.App) -> None:
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    async with client_of(local_app, limits=SOON, body_seconds=0.2) as client:
        async with client.stream("GET", f"/jobs/{job.id}/events") as response:
            waited = await client.get(f"/jobs/{job.id}/result", params={"timeout": 1})
            assert waited.status_code == 202
            await headrace.JobOrchestrator(local_app).run_until_idle()
            lines = [line async for line in response.aiter_lines()]
        assert any('"completed"' in line for line in lines)


async def test_silent_connections_give_way(local_app: headrace.App) -> None:
    """With as many connections as there may be, the one that was silent for longest is closed."""
    limits = ConnectionLimits(header_seconds=60, most=8)
    async with client_of(local_app, limits=limits) as client, contextlib.AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(line_to(client, b"GET /")) for _ in range(20)]
        for _ in range(3):
            async with httpx.AsyncClient(base_url=client.base_url) as other:
                assert (await other.get("/healthz")).status_code == 200

        def closed() -> int:
            return sum(each.at_eof() or each.exception() is not None for each, _ in silent)

        await until(lambda: closed() >= 12, "twelve of them to be closed")


async def test_connections_in_use_do_not_give_way(local_app: headrace.App) -> None:
    limits = ConnectionLimits(header_seconds=60, most=3)
    async with client_of(local_app, limits=limits) as client, contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            follow = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
            reader, _ = await stack.enter_async_context(line_to(client, follow))
            await reader.readuntil(b"following")
        async with line_to(client) as (reader, _):
            assert (await rest_of(reader)).startswith(b"HTTP/1.1 503")


def test_there_is_room_for_other_files() -> None:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
        assert ConnectionLimits().fitting() == 256 - OTHER_FILES
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
        assert ConnectionLimits().fitting() == 32
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    assert ConnectionLimits(most=5).fitting() == 5


async def test_a_request_has_one_length(local_app: headrace.App) -> None:
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    smuggled = b"GET /queues HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with client_of(local_app) as client, line_to(client, POST + both + smuggled) as line:
        answer = await rest_of(line[0])
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_body_that_is_too_large_is_answered(tmp_path: Path) -> None:
    """Not reset: a client that is still sending would not see the answer."""
    async with make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as app:
        key = bearer(await a_key(app))
        limit = 200_000
        async with client_of(app, upload_limit=limit) as client:
            file = {"file": ("a.bin", b"x" * (limit + 20 * 65_536))}
            for headers, status in ((key, 413), ({}, 401)):
                for _ in range(3):
                    answer = await client.post(
                        "/jobs", data={"task": "ingest"}, files=file, headers=headers
                    )
                    assert answer.status_code == status
            body = b'{"task": "add", "args": {"x": "' + b"x" * 8_000_000 + b'"}}'
            answer = await client.post(
                "/jobs", content=body, headers=key | {"Content-Type": "application/json"}
            )
            assert answer.status_code == 413


async def test_what_is_left_of_a_body_is_read_within_bounds(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming_bodies, "REST_BYTES", 1_000)
    huge = POST + b"Content-Length: 9000000000\r\n\r\n"
    async with client_of(local_app) as client:
        async with line_to(client, huge) as (reader, _):
            assert (await rest_of(reader)).startswith(b"HTTP/1.1 413")
        asked = POST + b"Content-Length: 900\r\nExpect: 100-continue\r\n"
        async with line_to(client, asked.replace(b"/jobs", b"/nope") + b"\r\n") as (reader, _):
            async with asyncio.timeout(30):
                assert (await reader.readline()).startswith(b"HTTP/1.1 404")


async def test_three_hundred_silent_connections_lock_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    with Processes(tmp_path) as processes, contextlib.ExitStack() as stack:
        server = processes.headrace("server", "--app", "shop", "--port", "0", "--json")
        url = httpx.URL(await address_of(server))
        for _ in range(300):
            silent = socket.create_connection((url.host, url.port or 0), timeout=30)
            stack.callback(silent.close)
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:

            async def answered() -> bool:
                with contextlib.suppress(httpx.TransportError):
                    return (await client.get("/queues")).status_code == 200
                return False

            await until(answered, "an answer")


SHOP = """
import resource

import headrace

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
app = headrace.App()
"""
