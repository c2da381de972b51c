"""A line that can be broken: a TCP proxy between one program and its server.

Whatever is switched on counts for every connection, also for those that are there already.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

Direction = Literal["requests", "replies"]
CHUNK = 65_536


class Proxy:
    """Listens on a port of its own and passes everything on to `target`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        # Seconds by which each piece is late, and bytes that pass in a second; 0: any number.
        self.delay = 0.0
        self.rate = 0
        # So many replies are still to be lost, each with its connection.
        self.cuts = 0
        # Whether new connections are turned away.
        self.refusing = False
        self._open = {"requests": asyncio.Event(), "replies": asyncio.Event()}
        for event in self._open.values():
            event.set()
        self._lines: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port of the loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=CHUNK)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, and end every connection."""
        if self._server is not None:
            self._server.close()
        lines = list(self._lines)
        self.reset()
        await asyncio.gather(*(line.ended() for line in lines))

    # --- what faults do

    def block(self, *directions: Direction) -> None:
        """Nothing passes any more in these directions. What is sent is kept for `unblock`."""
        for direction in directions:
            self._open[direction].clear()

    def unblock(self) -> None:
        """What was held up goes on."""
        for event in self._open.values():
            event.set()

    def reset(self) -> None:
        """End every connection at once, as a rebooting router does."""
        for line in list(self._lines):
            line.abort()

    def heal(self) -> None:
        """A good line again."""
        self.delay, self.rate, self.cuts, self.refusing = 0.0, 0, 0, False
        self.unblock()

    # --- what connections do

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        line = Connection(self, reader, writer)
        self._lines.add(line)
        try:
            await line.run()
        finally:
            self._lines.discard(line)

    async def passage(self, direction: Direction, size: int) -> bool:
        """Wait until a piece may pass. False: it is lost, and its connection with it."""
        await self._open[direction].wait()
        late = self.delay + (size / self.rate if self.rate else 0.0)
        if late:
            await asyncio.sleep(late)
            await self._open[direction].wait()
        if direction == "replies" and self.cuts > 0:
            self.cuts -= 1
            return False
        return True


class Connection:
    """One connection of a program, and the one to the server that goes with it."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.proxy = proxy
        self.client = (reader, writer)
        self.server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Pass everything on until one side ends."""
        self._task = asyncio.current_task()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            self.server = await asyncio.open_connection("127.0.0.1", self.proxy.target, limit=CHUNK)
            ways = [
                asyncio.ensure_future(self._pump("requests", self.client[0], self.server[1])),
                asyncio.ensure_future(self._pump("replies", self.server[0], self.client[1])),
            ]
            try:
                await asyncio.wait(ways, return_when="FIRST_COMPLETED")
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        self._end()

    def abort(self) -> None:
        """End it at once, on both sides."""
        self._end()
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until nothing of it is left."""
        for _, writer in filter(None, (self.client, self.server)):
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _end(self) -> None:
        for _, writer in filter(None, (self.client, self.server)):
            writer.transport.abort()

    async def _pump(
        self, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(CHUNK):
            if not await self.proxy.passage(direction, len(data)):
                return
            writer.write(data)
            await writer.drain()
        # The end of a connection does not pass through a line that is broken either.
        await self.proxy.passage(direction, 0)
