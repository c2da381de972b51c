"""A real receiver of webhooks on loopback, which does as a test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from standardwebhooks import Webhook

from tests.support.servers import free_port


class Received(msgspec.Struct):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded

    def verified(self, secret: str) -> Any:
        """The event, if the independent library takes the signature for good."""
        return Webhook(secret).verify(self.body, self.headers)


class Answer(msgspec.Struct):
    """What to answer. `hang`: nothing at all; `size`: so many bytes."""

    status: int = 200
    headers: dict[str, str] = {}
    hang: bool = False
    size: int = 2


class Receiver:
    """Answers with the next of `answers`, then with `always`."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.answers: list[Answer] = []
        self.always = Answer()
        self.sent = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [each.event["id"] for each in self.requests]

    async def start(self) -> None:
        # One that nobody is given for a connection while this one is stopped.
        self.port = self.port or free_port()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._request(reader, writer):
                    pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Received(first.split()[1], headers, body))
        answer = self.answers.pop(0) if self.answers else self.always
        if answer.hang:
            await asyncio.Event().wait()
        extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        writer.write(
            f"HTTP/1.1 {answer.status} X\r\ncontent-length: {answer.size}\r\n{extra}\r\n".encode()
        )
        for start in range(0, answer.size, 65_536):
            part = min(65_536, answer.size - start)
            writer.write(b"x" * part)
            await writer.drain()
            self.sent += part
        return True


@contextlib.asynccontextmanager
async def a_receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
