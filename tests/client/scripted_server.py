"""A real HTTP server that answers by a script: trouble that a healthy server never makes.

It reads a request, notes it, and does the next thing of the script: send bytes, keep silent, or
hang up. Everything else is tested against the server itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

Act = Callable[[asyncio.StreamWriter], Any]


class Request(NamedTuple):
    """What arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Scripted:
    """The server, with what it has been asked."""

    def __init__(self, script: list[Act]) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.connections = 0
        self.url = ""
        self._arrived = asyncio.Condition()
        self._serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of our own: asyncio would report one that is cancelled."""
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def end(self) -> None:
        """End every connection, also those that would keep silent for ever."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read(reader):
                self.requests.append(request)
                async with self._arrived:
                    self._arrived.notify_all()
                # The last act goes on for ever.
                act = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                if await act(writer) is False:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def asked(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


@asynccontextmanager
async def scripted(*acts: Act) -> AsyncIterator[Scripted]:
    """Serve a script on a free port of this machine."""
    made = Scripted(list(acts))
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await made.end()


def answer(status: int, body: object = None, kind: str = "application/json", **headers: str) -> Act:
    """Answer with JSON, or with bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()

    return act


def problem(status: int, word: str, detail: str, **more: str) -> Act:
    """Answer with a problem document."""
    body = {"type": f"urn:headrace:problem:{word}", "status": status, "detail": detail, **more}
    return answer(status, body, "application/problem+json")


def events(*parts: bytes) -> Act:
    """Send a piece of an event stream, then hang up."""

    async def act(writer: asyncio.StreamWriter) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for part in parts:
            writer.write(part)
            await writer.drain()
        return False

    return act


async def hang_up(_: asyncio.StreamWriter) -> bool:
    """Close the connection without a word."""
    return False


async def keep_silent(_: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()
