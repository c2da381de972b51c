"""A reverse proxy of a few lines: it passes bytes on, and may take a prefix away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

LONGEST_HEAD = 65_536


@asynccontextmanager
async def proxy(target: str, *, strip: str) -> AsyncIterator[str]:
    """Yield the URL of a proxy in front of `target`. Each connection has one request."""
    at = urlsplit(target)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            method, path, version = line.split(b" ")
            path = path.removeprefix(strip.encode())
            fields = [each for each in rest.split(b"\r\n") if not _hop(each)]
            inner, out = await asyncio.open_connection(at.hostname, at.port)
            out.write(b" ".join((method, path, version)) + b"\r\nConnection: close\r\n")
            out.write(b"\r\n".join(fields))
            await asyncio.gather(_copy(reader, out), _copy(inner, writer, close=True))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=LONGEST_HEAD)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def _hop(field: bytes) -> bool:
    return field.lower().startswith((b"connection:", b"keep-alive:"))


async def _copy(
    source: asyncio.StreamReader, to: asyncio.StreamWriter, *, close: bool = False
) -> None:
    try:
        while chunk := await source.read(LONGEST_HEAD):
            to.write(chunk)
            await to.drain()
    except OSError:
        pass
    finally:
        # The browser waits for the end of the answer; then it closes its side as well.
        to.close()
