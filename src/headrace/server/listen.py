"""Runs the API: on this machine only, or on others too where keys exist."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import uvicorn

from headrace.admin.keys import list_keys
from headrace.app import App
from headrace.errors import InvalidSetting
from headrace.loops.sockets import bind, url_of
from headrace.server import app as factory
from headrace.server.connections import ConnectionLimits, bounded_protocol
from headrace.server.service import Service

BACKLOG = 2_048
# How long requests may take to finish when the server stops.
GRACE = 10


class HttpServer(uvicorn.Server):
    """Uvicorn without signal handlers: the caller decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


async def serve(
    app: App,
    *,
    host: str | None = None,
    port: int | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve the API of an App until cancelled; then let open requests finish.

    `on_start` is called with the URL as soon as clients can connect. The other options are those
    of `headrace.server.create`. Refuses to listen beyond this machine without keys.
    """
    async with listening(app, host=host, port=port, **options) as url:
        if on_start is not None:
            on_start(url)
        await asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def listening(
    app: App,
    *,
    host: str | None = None,
    port: int | None = None,
    limits: ConnectionLimits | None = None,
    **options: Any,
) -> AsyncIterator[str]:
    """The same as a context, which yields the URL and stops at the end."""
    host = app.settings.host if host is None else host
    port = app.settings.port if port is None else port
    await check_reach(app, host)
    sock = bind(host, port)
    api = factory.create(app, **options)
    listener = HttpServer(
        uvicorn.Config(
            api,
            http=bounded_protocol(limits or ConnectionLimits()),
            log_config=None,
            access_log=False,
            backlog=BACKLOG,
            # The caller is the peer of the connection. Behind a proxy that is the proxy.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            lifespan="on",
        )
    )
    service: Service = api.state.headrace.get()
    serving = asyncio.create_task(listener.serve(sockets=[sock]), name="headrace server")
    try:
        while not listener.started:
            if serving.done():
                await serving
                raise InvalidSetting(f"the server on {host}:{port} could not start; see its log")
            await asyncio.sleep(0.01)
        yield url_of(sock)
    finally:
        listener.should_exit = True
        # Streams never end by themselves, and some waits last a minute.
        service.begin_shutdown()
        await asyncio.gather(serving, return_exceptions=True)
        sock.close()


async def check_reach(app: App, host: str) -> None:
    """Refuse to listen on other interfaces while there are no keys."""
    if is_loopback(host) or await list_keys(app):
        return
    raise InvalidSetting(
        f"host {host} can be reached from other machines, but there are no keys, so everybody "
        "could do everything; make one first with: headrace keys create --scope admin"
    )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to a host."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False  # `bind` raises the error
    return all(ipaddress.ip_address(address).is_loopback for address in found)
