"""A slow and lossy line: a TCP proxy, for kernels that have no `netem`.

Each piece is late by `delay`, in order. Of a hundred pieces `loss` are lost: TCP hides that from
programs but for the time, which is one timeout of a retransmission more, for all that is behind it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random

RETRANSMIT = 0.2
CHUNK = 65_536


class Line:
    """Passes everything on to one address."""

    def __init__(self, host: str, port: int, delay: float, loss: float) -> None:
        self._target = (host, port)
        self._delay = delay
        self._loss = loss / 100
        self._chance = random.Random(1)

    async def serve(self, port: int) -> None:
        """Listen on the loopback of this host, until the process ends."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        print("ready", flush=True)
        await server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = asyncio.create_task(self._send(pieces, writer))
        loop = asyncio.get_running_loop()
        due = 0.0
        with contextlib.suppress(OSError):
            while piece := await reader.read(CHUNK):
                lost = self._chance.random() < self._loss
                due = max(due, loop.time() + self._delay + (RETRANSMIT if lost else 0.0))
                pieces.put_nowait((due, piece))
        pieces.put_nowait((due, b""))
        await sending

    async def _send(
        self, pieces: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(max(due - loop.time(), 0))
                if not piece:
                    break
                writer.write(piece)
                await writer.drain()
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind in (
        ("port", int),
        ("host", str),
        ("to", int),
        ("delay", float),
        ("loss", float),
    ):
        parser.add_argument(name, type=kind)
    given = parser.parse_args()
    line = Line(given.host, given.to, given.delay, given.loss)
    asyncio.run(line.serve(given.port))


if __name__ == "__main__":
    main()
