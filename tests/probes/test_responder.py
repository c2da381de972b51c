"""The responder keeps its bounds whatever is sent, and goes on answering others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from headrace.errors import InvalidSetting
from headrace.loops.sockets import SocketAddress, parse_address
from headrace.probes import probes_on, responder
from headrace.probes.listen import FRESH_SECONDS
from tests.probes.conftest import Asked, ask
from tests.support.processes import until

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class Fake:
    """A process that says what a test wants."""

    def __init__(self) -> None:
        self.wrong: str | None = None
        self.made = 0
        self.asked = 0
        self.broken = False
        self.go = asyncio.Event()
        self.go.set()

    async def trouble(self) -> str | None:
        self.asked += 1
        await self.go.wait()
        return self.wrong

    async def metrics(self) -> bytes:
        self.made += 1
        await self.go.wait()
        if self.broken:
            raise ZeroDivisionError
        return b"# a comment\n" * 50_000


class Probes:
    """Probes that answer, on the loop of the test."""

    def __init__(self, url: str, process: Fake) -> None:
        self.url = url
        self.process = process
        self.port = int(url.rpartition(":")[2])

    async def ask(self, path: str, method: str = "GET") -> Asked:
        return await asyncio.to_thread(ask, f"{self.url}{path}", method=method)

    async def send(self, sent: bytes) -> bytes:
        """Everything that comes back until the connection ends, which it has to."""
        async with self.line(sent) as (reader, _):
            return await rest_of(reader)

    @contextlib.asynccontextmanager
    async def line(
        self, sent: bytes = b""
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent)
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


@pytest.fixture
async def probes() -> AsyncIterator[Probes]:
    process = Fake()
    async with probes_on("0", process) as url:
        yield Probes(url or "", process)


async def test_it_answers(probes: Probes) -> None:
    assert probes.url.startswith("http://127.0.0.1:"), "without a host it is for this machine"
    healthy = await probes.ask("/healthz")
    assert (healthy.status, healthy.json) == (200, {"status": "ok"})
    assert (await probes.ask("/readyz?verbose")).status == 200
    probes.process.wrong = "it stops"
    stopping = await probes.ask("/readyz")
    assert (stopping.status, stopping.json) == (503, {"status": "not ready", "reason": "it stops"})
    assert (await probes.ask("/healthz")).status == 200
    metrics = await probes.ask("/metrics")
    assert metrics.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert len(metrics.body) == 600_000
    head = await probes.send(b"HEAD /readyz HTTP/1.0\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert head.endswith(b"\r\n\r\n")
    refused = await probes.send(b"PUT /readyz HTTP/1.1\r\n\r\n")
    assert b"\r\nAllow: GET, HEAD\r\n" in refused


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /jobs HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /../healthz HTTP/1.1\r\n\r\n", 404),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/2.0\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\xff hello HTTP/1.\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * responder.MOST_BYTES, 431),
        (b"G" * 100_000, 431),
    ],
)
async def test_other_requests_are_refused(probes: Probes, sent: bytes, status: int) -> None:
    answer = await probes.send(sent)
    # What was sent after the end of the answer may reset the connection before it is read.
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()) or (len(sent) > 10_000 and not answer)
    assert (await probes.send(GET)).startswith(b"HTTP/1.1 200 ")


async def test_a_connection_has_one_request(probes: Probes) -> None:
    assert (await probes.send(GET * 3)).count(b"HTTP/1.1") == 1
    probes.process.go.clear()
    async with probes.line(b"GET /metrics HTTP/1.1\r\n\r\n") as (reader, writer):
        await until(lambda: probes.process.made)
        writer.write(GET)  # while the first one is answered
        await writer.drain()
        assert (await probes.send(GET)).startswith(b"HTTP/1.1 200 "), "others are"
        probes.process.go.set()
        answer = await rest_of(reader)
    assert answer.count(b"HTTP/1.1") <= 1
    assert b'"ok"' not in answer


async def test_what_is_sent_after_a_request_is_no_work(probes: Probes) -> None:
    probes.process.go.clear()
    async with probes.line(b"GET /readyz HTTP/1.1\r\n\r\n") as (reader, writer):
        await until(lambda: probes.process.asked)
        for _ in range(20):
            writer.write(b"GET /readyz HTTP/1.1\r\n\r\n")
            await writer.drain()
            assert (await probes.send(GET)).startswith(b"HTTP/1.1 200 ")
        probes.process.go.set()
        await rest_of(reader)
    assert probes.process.asked == 1


@pytest.mark.parametrize(
    "sent", [b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["0", "line", "head"]
)
async def test_half_a_request_is_closed(
    probes: Probes, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "DEADLINE", 0.2)
    assert await probes.send(sent) == b""


async def test_one_who_drips_or_does_not_read_is_closed_too(
    probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "DEADLINE", 0.3)
    async with probes.line() as (reader, writer):

        async def drip() -> None:
            with contextlib.suppress(OSError):
                for _ in range(5_000):
                    writer.write(b"X")
                    await writer.drain()
                    await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        await rest_of(reader)
        dripping.cancel()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", probes.port))
        await loop.sock_sendall(deaf, b"GET /metrics HTTP/1.1\r\n\r\n")
        await until(lambda: probes.process.made and not open_connections())


def open_connections() -> int:
    """How many connections the responder has."""
    import gc

    return sum(
        len(each.connections) for each in gc.get_objects() if type(each) is responder.Responder
    )


async def test_silent_connections_lock_nobody_out(
    probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "MOST_CONNECTIONS", 8)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(30):
            await stack.enter_async_context(probes.line(b"GET /"))
        for _ in range(3):
            assert (await probes.send(GET)).startswith(b"HTTP/1.1 200 ")
        assert open_connections() <= 8


async def test_metrics_are_made_once_for_all_who_ask(
    probes: Probes, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(probes.ask("/metrics") for _ in range(30)))
    assert probes.process.made <= 1 + (loop.time() - began) / FRESH_SECONDS
    probes.process.broken = True

    async def refused() -> bool:
        return (await probes.ask("/metrics")).status == 500

    await until(refused)
    assert "could not be answered" in caplog.text
    assert (await probes.ask("/healthz")).status == 200


async def test_one_who_goes_away_does_not_take_the_metrics_from_others(probes: Probes) -> None:
    probes.process.go.clear()
    async with probes.line(b"GET /metrics HTTP/1.1\r\n\r\n"):
        await until(lambda: probes.process.made)
        other = asyncio.create_task(probes.ask("/metrics"))
        await until(lambda: open_connections() == 2)
    await until(lambda: open_connections() == 1)
    probes.process.go.set()
    assert (await other).status == 200
    assert probes.process.made == 1


def test_where_to_listen() -> None:
    assert parse_address("probes", "9100") == SocketAddress("127.0.0.1", 9100)
    assert parse_address("probes", "0.0.0.0:0") == SocketAddress("0.0.0.0", 0)
    assert parse_address("probes", "[::1]:9100") == SocketAddress("::1", 9100)
    assert parse_address("probes", "off") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":9100", 'write "9100" for this machine only'),
        ("::1:9100", "put an IPv6 address in brackets"),
        ("http", "must be [HOST:]PORT"),
        ("localhost", "must be [HOST:]PORT"),
        ("65536", "between 0 and 65535"),
        ("-1", "must be [HOST:]PORT"),
        ("", "must be [HOST:]PORT"),
    ],
)
def test_a_bad_address_is_refused(text: str, words: str) -> None:
    import headrace

    with pytest.raises(InvalidSetting, match="probes") as refused:
        headrace.App(probes=text)
    assert words in str(refused.value)
    assert repr(text) in str(refused.value)
