"""Serves the probes of a process where its settings say so."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from http import HTTPStatus

import msgspec

from headrace.loops.sockets import bind, parse_address, url_of
from headrace.monitor.metrics.text import CONTENT_TYPE
from headrace.probes.probe import Probe
from headrace.probes.responder import ProbeResponse, Responder

log = logging.getLogger("headrace.probes")

# Metrics are made once in so many seconds, however many ask.
FRESH_SECONDS = 1.0
BACKLOG = 64


@contextlib.asynccontextmanager
async def probes_on(address: str | None, probe: Probe) -> AsyncIterator[str | None]:
    """Answer for a process until the end of the block, if an address is set. Yields the URL.

    Raises `InvalidSetting` if the port is taken.
    """
    where = None if address is None else parse_address("probes", address)
    if where is None:
        yield None
        return
    sock = bind(*where, choose="--probes or HEADRACE_PROBES")
    answers = _Answers(probe)
    responder = Responder(
        {"/healthz": answers.healthz, "/readyz": answers.readyz, "/metrics": answers.metrics}
    )
    server = await asyncio.get_running_loop().create_server(responder, sock=sock, backlog=BACKLOG)
    url = url_of(sock)
    log.info("Probes at %s/healthz, %s/readyz and %s/metrics", url, url, url)
    try:
        yield url
    finally:
        server.close()
        responder.close()


class _Answers:
    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._metrics = b""
        self._made_at = float("-inf")
        self._making: asyncio.Task[None] | None = None

    async def healthz(self) -> ProbeResponse:
        """The event loop answers: that is all that it says."""
        return _answer(HTTPStatus.OK, {"status": "ok"})

    async def readyz(self) -> ProbeResponse:
        """Whether the process can work now."""
        trouble = await self._probe.trouble()
        if trouble is None:
            return _answer(HTTPStatus.OK, {"status": "ok"})
        return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "not ready", "reason": trouble})

    async def metrics(self) -> ProbeResponse:
        """Its numbers, a second old at most."""
        if time.monotonic() - self._made_at > FRESH_SECONDS:
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make(), name="headrace metrics")
            # One who goes away must not take it from the others.
            await asyncio.shield(self._making)
        return ProbeResponse(HTTPStatus.OK, self._metrics, CONTENT_TYPE)

    async def _make(self) -> None:
        self._metrics = await self._probe.metrics()
        self._made_at = time.monotonic()


def _answer(status: HTTPStatus, body: dict[str, str]) -> ProbeResponse:
    return ProbeResponse(status, msgspec.json.encode(body))
