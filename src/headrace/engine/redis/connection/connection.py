"""The wire: commands go out as they come, answers come in that order.

A client of our own, because the usual ones keep a connection to themselves from question to answer:
they would either wait for each other or open more connections. It also costs half as much per job.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.errors import before_greeting, fault, unavailable

Part = str | bytes | int | float
Pushed = Callable[[Any], None]


# Read at once at most; an answer of any length comes in several parts.
_BUFFER_BYTES = 262_144


class RedisProtocol(asyncio.BufferedProtocol):
    """An open connection. When it is lost, everybody who waits for an answer is told.

    It reads into a buffer of its own: asyncio would make one for each read that is so large that
    the system has to map and unmap it, which takes longer than reading.
    """

    def __init__(self, address: RedisAddress, on_push: Pushed | None = None) -> None:
        self.address = address
        self.server: dict[str, str] = {}
        self.closed = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(_BUFFER_BYTES)
        # What TLS reads into: it cuts pieces off, and those of a bytearray are copies.
        self._view = memoryview(self._buffer)
        self._reader = hiredis.Reader(notEnoughData=_MORE)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._nobody: asyncio.Future[Any] = self._loop.create_future()
        self._nobody.cancel()
        self._on_push = on_push
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._last_heard = self._loop.time()

    @classmethod
    async def open(cls, address: RedisAddress, on_push: Pushed | None = None) -> RedisProtocol:
        """Connect and introduce ourselves. Raises `EngineUnavailable`, also when it takes long."""
        loop = asyncio.get_running_loop()
        wire: RedisProtocol | None = None
        try:
            async with asyncio.timeout(address.timeout):
                if address.path is not None:
                    _, wire = await loop.create_unix_connection(lambda: cls(address), address.path)
                else:
                    _, wire = await loop.create_connection(
                        lambda: cls(address),
                        address.host,
                        address.port,
                        ssl=address.ssl_context,
                    )
                hello, *_ = await asyncio.gather(*(wire.call(c) for c in address.greeting()))
        except (OSError, TimeoutError) as error:
            if wire is not None:
                wire.abort()
            raise unavailable(address, error) from error
        except BaseException:
            if wire is not None:
                wire.abort()
            raise
        texts = [part.decode() if isinstance(part, bytes) else str(part) for part in hello]
        wire.server = dict(zip(texts[::2], texts[1::2], strict=False))
        wire._on_push = on_push
        return wire

    @property
    def open_now(self) -> bool:
        """Whether the connection is up, as far as anybody knows."""
        return not self.closed.done()

    @property
    def silence(self) -> float:
        """Seconds since the server was last heard."""
        return self._loop.time() - self._last_heard

    def call(self, command: tuple[Part, ...]) -> asyncio.Future[Any]:
        """Send a command; its answer, or an `EngineError`, comes through the future."""
        return self.call_packed(pack(command))

    def call_packed(self, commands: bytes, *, unheard: int = 0) -> asyncio.Future[Any]:
        """The same for what is packed already. There may be commands in front of the one whose
        answer counts: so many answers are `unheard`.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._transport is None or self.closed.done():
            answer.set_exception(unavailable(self.address, "the connection was lost"))
            return answer
        self._transport.write(commands)
        now = self._loop.time()
        for _ in range(unheard):
            self._waiting.append((self._nobody, now))
        self._waiting.append((answer, now))
        if self._watch is None:
            self._watch = self._loop.call_later(self.address.timeout / 4, self._look)
        return answer

    def send(self, command: tuple[Part, ...]) -> None:
        """Send a command whose answer arrives as a push."""
        if self._transport is not None and not self.closed.done():
            self._transport.write(pack(command))

    async def close(self) -> None:
        """Wait for what was asked, then hang up."""
        end = self._loop.time() + self.address.timeout
        # Whoever is told that the server lacks a script sends it now, and asks once more.
        while pending := [answer for answer, _ in self._waiting if not answer.done()]:
            if not (await asyncio.wait(pending, timeout=end - self._loop.time()))[0]:
                break
        if self._transport is not None:
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.closed), 1.0)
        self.abort()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("the connection was closed")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        self._last_heard = self._loop.time()
        # The stub knows only bytes.
        self._reader.feed(self._buffer, 0, nbytes)  # type: ignore[arg-type]
        try:
            while (reply := self._reader.gets()) is not _MORE:
                self._deliver(reply)
        except hiredis.ProtocolError as error:
            self._lose(f"it does not speak the Redis protocol ({error})")
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.server:
            self._lose(before_greeting(self.address, error))
        self._lose(error or "the connection was lost")

    def _deliver(self, reply: Any) -> None:
        if not self._waiting:
            if self._on_push is not None:
                self._on_push(reply)
            return
        answer, _ = self._waiting.popleft()
        if answer.done():
            return  # its caller was cancelled and waits no longer, or never did
        if isinstance(reply, hiredis.ReplyError):
            answer.set_exception(fault(self.address, str(reply)))
        else:
            answer.set_result(reply)

    def _look(self) -> None:
        """Give up on a server that holds the line but says nothing. An answer may take as long as
        it likes to arrive: answers come in order, so whatever is heard is a part of the next.
        """
        self._watch = None
        if not self._waiting or self.closed.done():
            return
        if self._loop.time() - max(self._waiting[0][1], self._last_heard) > self.address.timeout:
            self._lose(f"no answer within {self.address.timeout:g} s")
            self.abort()
            return
        self._watch = self._loop.call_later(self.address.timeout / 4, self._look)

    def _lose(self, cause: BaseException | str) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(unavailable(self.address, cause))


def pack(command: tuple[Part, ...]) -> bytes:
    """A command as the server reads it."""
    # The stub knows only tuples of one part.
    packed: bytes = hiredis.pack_command(command)  # type: ignore[arg-type]
    return packed


def pack_beginning(parts: tuple[Part, ...], more: int) -> bytes:
    """The beginning of a command, to which `pack_rest` adds so many parts more."""
    return b"*%d\r\n" % (len(parts) + more) + pack_rest(parts)


def pack_rest(parts: tuple[Part, ...]) -> bytes:
    """Parts of a command as the server reads them, without their number."""
    return pack(parts).partition(b"\r\n")[2]


class _More:
    """What the parser answers while a reply is incomplete."""


_MORE = _More()
