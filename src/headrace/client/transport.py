"""Requests over connections that are kept open, sent again where that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from headrace.client.address import ServerAddress
from headrace.client.errors import TooManyRequests, error_for
from headrace.client.request import LONGEST_WAIT, Request, Response, pause
from headrace.errors import EngineUnavailable, HeadraceError, InvalidSetting
from headrace.tracing import current_headers
from headrace.version import __version__

# Servers close a connection that was idle for a few seconds (uvicorn: 5). We let go of it first,
# or a request could be sent into a connection that is just being closed.
KEEP_IDLE = 3.0
CONNECTIONS = 100
CLOSED = "the Client was closed while this was under way; it may have been done or not, ask again"


class ClientLifetime:
    """The time up to the next close. Requests that were begun in it end with it: those that wait
    for a response, or before another attempt, raise at once.
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

    def __init__(self, address: ServerAddress, *, timeout: float, retries: int) -> None:
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
        self.lifetime = ClientLifetime()

    async def send(self, request: Request, lifetime: ClientLifetime | None = None) -> Response:
        """Send a request; again, with growing pauses, where nothing can happen twice.

        `lifetime` is that of a verb that sends several requests: if the Client is closed while it
        is under way, it ends then, and does not connect again.
        """
        lifetime = lifetime or self.lifetime
        lifetime.check()
        for tried in itertools.count():
            try:
                return await self._once(request)
            except TooManyRequests as error:
                # It was refused before anything was done, so it may always be sent again.
                asked = error.retry_after or 0.0
                if tried >= self._retries or asked > LONGEST_WAIT:
                    raise
                await lifetime.pause(max(pause(tried), asked))
            except EngineUnavailable:
                lifetime.check()
                if not request.idempotent or tried >= self._retries:
                    raise
                await lifetime.pause(pause(tried))
        raise AssertionError("unreachable")

    async def _once(self, request: Request) -> Response:
        content: dict[str, Any] = {}
        headers = dict(current_headers())
        if request.files is not None:
            content = {"files": request.files, "data": request.fields}
        elif request.body is not None:
            content = {"content": request.body}
            headers["Content-Type"] = "application/json"
        with self._reaching(request):
            response = await self._connected().request(
                request.method,
                request.path,
                params=request.params,
                headers=headers,
                timeout=self._limits(request.read_timeout),
                **content,
            )
        if not response.is_success:
            raise self._refusal(request, response)
        return Response(response.status_code, response.content)

    @asynccontextmanager
    async def stream(
        self,
        request: Request,
        *,
        silence: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Begin to read a response. It may go on for ever, if not silent for `silence` seconds."""
        with self._reaching(request):
            async with self._connected().stream(
                request.method,
                request.path,
                params=request.params,
                headers=headers,
                timeout=self._limits(silence),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise self._refusal(request, response)
                yield response

    async def close(self) -> None:
        """Close every connection. The next request connects again."""
        http, self._http = self._http, None
        lifetime, self.lifetime = self.lifetime, ClientLifetime()
        if self._process == os.getpid():
            lifetime.end()
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
            # A server on this machine is never reached through a proxy.
            mounts={"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None},
        )

    def _limits(self, read_timeout: float | None) -> httpx.Timeout:
        read = self._timeout if read_timeout is None else read_timeout
        return httpx.Timeout(self._timeout, read=read)

    @contextlib.contextmanager
    def _reaching(self, request: Request) -> Iterator[None]:
        """Raise EngineUnavailable, with its cause, if the server cannot be reached."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise EngineUnavailable(f"{self._asked(request)}: no answer in time") from error
        except httpx.TransportError as error:
            raise EngineUnavailable(
                f"{self._asked(request)}: {str(error) or type(error).__name__}; is the server "
                "running (headrace server), and is API_URL right?"
            ) from error

    def _refusal(self, request: Request, response: httpx.Response) -> HeadraceError:
        return error_for(
            response.status_code,
            response.headers,
            response.content,
            asked=self._asked(request),
            conflict_error=request.conflict_error,
        )

    def _asked(self, request: Request) -> str:
        return f"{request.method} {self.address.base}{request.path}"


def _trusted(base: str) -> ssl.SSLContext | bool:
    """The authorities that are trusted. Reading them takes a while, and plain HTTP needs none."""
    # We never follow a redirect, so no other server is asked. This context would trust nobody.
    return True if base.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
