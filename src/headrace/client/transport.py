"""Requests over connections that are kept, tried again where that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from headrace.client.address import Address
from headrace.client.error_mapping import error_for
from headrace.client.errors import RateLimited
from headrace.client.request import LONGEST_WAIT, Answer, Call, pause
from headrace.errors import EngineUnavailable, HeadraceError, InvalidSetting
from headrace.version import __version__

if importlib.util.find_spec("sniffio") is None:
    # httpx looks for it several times in every request. Where it is not installed, each look goes
    # through the whole path, and that is a quarter of what a request costs.
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]

# Servers close a connection that was idle for a few seconds (uvicorn: 5). We let go of it first,
# or a request could be sent into a connection that is just being closed.
KEEP_IDLE = 3.0
CONNECTIONS = 100
CLOSED = "the Client was closed while this was under way; it may have been done or not, ask again"


class Session:
    """The time from the first call, or a close, to the next close. What was begun in it ends with
    it: whoever waits for an answer, or before trying again, is told at once.
    """

    def __init__(self) -> None:
        self._ended = False
        self._pauses: set[asyncio.Future[None]] = set()

    def check(self) -> None:
        """Raise if it has ended."""
        if self._ended:
            raise EngineUnavailable(CLOSED)

    async def pause(self, seconds: float) -> None:
        """Wait so long. Raises as soon as it ends."""
        woken = asyncio.get_running_loop().create_future()
        self._pauses.add(woken)
        try:
            await asyncio.wait([woken], timeout=seconds)
        finally:
            self._pauses.discard(woken)
        self.check()

    def end(self) -> None:
        """The Client is closed."""
        self._ended = True
        for woken in self._pauses:
            if not woken.done():
                woken.set_result(None)


class Transport:
    """Sends calls to one server and turns refusals into errors."""

    def __init__(self, address: Address, *, timeout: float, retries: int) -> None:
        if not timeout > 0:
            raise InvalidSetting(f"timeout must be more than 0 seconds, got {timeout!r}")
        if retries < 0:
            raise InvalidSetting(f"retries must be at least 0, got {retries!r}")
        self.address = address
        self._timeout = timeout
        self._retries = retries
        self._http: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self.session = Session()

    async def send(self, call: Call, session: Session | None = None) -> Answer:
        """Send a call; once more, with growing pauses, where nothing can happen twice.

        `session` is that of a verb that sends several calls: whatever was under way when the
        Client was closed ends then, and does not open it again.
        """
        session = session or self.session
        session.check()
        for tried in itertools.count():
            try:
                return await self._once(call)
            except RateLimited as error:
                # It was turned away at the door, so it may be sent again whatever it is.
                asked = error.retry_after or 0.0
                if tried >= self._retries or asked > LONGEST_WAIT:
                    raise
                await session.pause(max(pause(tried), asked))
            except EngineUnavailable:
                session.check()
                if not call.safe or tried >= self._retries:
                    raise
                await session.pause(pause(tried))
        raise AssertionError("unreachable")

    async def _once(self, call: Call) -> Answer:
        content: dict[str, Any] = {}
        headers = {}
        if call.files is not None:
            content = {"files": call.files, "data": call.fields}
        elif call.body is not None:
            content = {"content": call.body}
            headers["Content-Type"] = "application/json"
        with self._trouble(call):
            response = await self._connected().request(
                call.method,
                call.path,
                params=call.params,
                headers=headers,
                timeout=self._limits(call.patience),
                **content,
            )
        if not response.is_success:
            raise self._refusal(call, response)
        return Answer(response.status_code, response.content)

    @asynccontextmanager
    async def stream(
        self, call: Call, *, silence: float | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Begin to read an answer. It may go on for ever, but not in silence."""
        with self._trouble(call):
            async with self._connected().stream(
                call.method,
                call.path,
                params=call.params,
                headers=headers,
                timeout=self._limits(silence),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise self._refusal(call, response)
                yield response

    async def close(self) -> None:
        """Close every connection. The next call connects again."""
        http, self._http = self._http, None
        session, self.session = self.session, Session()
        if self._process == os.getpid():
            session.end()
            if http is not None:
                await http.aclose()

    def _connected(self) -> httpx.AsyncClient:
        """Connections belong to one event loop of one process; start afresh on another."""
        loop = asyncio.get_running_loop()
        if self._http is None or self._loop is not loop or self._process != os.getpid():
            forked = self._process != os.getpid()
            if self._http is not None and not forked and self._loop and not self._loop.is_closed():
                raise HeadraceError(
                    "this Client is in use on another event loop; "
                    "make one Client for each loop, or use headrace.client.sync"
                )
            self._http = self._connect()
            self._loop, self._process = loop, os.getpid()
        return self._http

    def _connect(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.address.base,
            auth=self.address.login,
            headers={
                "Accept": "application/json",
                "User-Agent": f"headrace/{__version__}",
                **self.address.headers(),
            },
            timeout=self._timeout,
            verify=_trusted(self.address.base),
            limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEEP_IDLE),
            # A server on this machine is never reached through somebody else's.
            mounts={"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None},
        )

    def _limits(self, patience: float | None) -> httpx.Timeout:
        read = self._timeout if patience is None else patience
        return httpx.Timeout(self._timeout, read=read)

    @contextlib.contextmanager
    def _trouble(self, call: Call) -> Iterator[None]:
        """Trouble on the way to the server becomes EngineUnavailable, with its cause."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise EngineUnavailable(f"{self._asked(call)}: no answer in time") from error
        except httpx.TransportError as error:
            raise EngineUnavailable(
                f"{self._asked(call)}: {str(error) or type(error).__name__}; is the server running "
                "(headrace server), and is API_URL right?"
            ) from error

    def _refusal(self, call: Call, response: httpx.Response) -> HeadraceError:
        return error_for(
            response.status_code,
            response.headers,
            response.content,
            asked=self._asked(call),
            conflict=call.conflict,
        )

    def _asked(self, call: Call) -> str:
        return f"{call.method} {self.address.base}{call.path}"


def _trusted(base: str) -> ssl.SSLContext | bool:
    """The authorities that are trusted. Reading them takes a while, and plain HTTP needs none."""
    # We never follow a redirect, so no other server is asked. This context would trust nobody.
    return True if base.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
