"""Requests to one host, one at a time: paced, limited, and to addresses that were checked."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from headrace import RateLimited
from headrace_spots.crawling.hosts import resolve
from headrace_spots.crawling.pages import Fetched, Inflater, TooLarge, retry_after
from headrace_spots.crawling.urls import PORTS, host_of, shown
from headrace_spots.errors import CrawlFailed

TRIES = 3
PAUSES = 6
"""So often a host may ask to wait before a page is left to a later attempt."""
FIRST_BACKOFF = 0.5
UNSAID_PAUSE = 5.0
# Timers may be some milliseconds early; a host that asked to wait shall not see it.
MARGIN = 0.05
BUSY = (429, 503)
STEPS = httpx.Timeout(20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How requests are made."""

    user_agent: str
    delay: float
    page_seconds: float
    patience: float
    largest_page: int
    allow_private: Callable[[str], bool]
    """Whether a URL may lead to a private address."""


class Fetcher:
    """Asks one host. It is used by one job at a time, which holds the lane of the host."""

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.delay = manners.delay
        self._ready = 0.0
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            timeout=STEPS,
            # Connections end with their request: the next address is checked again.
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={
                "User-Agent": manners.user_agent,
                "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1",
                "Accept-Encoding": "gzip, deflate",
                "Accept-Language": "ko,en;q=0.8,*;q=0.5",
            },
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def get(self, url: str, *, limit: int | None = None) -> Fetched:
        """Return what a host answers, tried again after errors of the host and when it asks to
        wait. A redirect is an answer like others. Raises `CrawlFailed` if there is none in the end,
        `RateLimited` if it asks for more patience than there is, which holds the lane of the host,
        `InvalidAddress` for a private one.
        """
        failed = paused = 0
        while True:
            try:
                fetched = await self._once(url, limit or self.manners.largest_page)
                problem = f"answered {fetched.status}"
            except (httpx.HTTPError, zlib.error, TimeoutError, CrawlFailed) as error:
                fetched, problem = None, _described(error)
            if fetched is not None and fetched.status in BUSY:
                await self._wait(url, fetched, paused)
                paused += 1
                continue
            if fetched is not None and fetched.status < 500:
                return fetched
            failed += 1
            if failed >= TRIES:
                if fetched is not None:
                    return fetched
                raise CrawlFailed(f"{shown(url)}: {problem}")
            self._ready = time.monotonic() + max(self.delay, FIRST_BACKOFF * 2**failed)

    async def _wait(self, url: str, fetched: Fetched, paused: int) -> None:
        asked = retry_after(fetched.headers)
        pause = UNSAID_PAUSE * 2**paused if asked is None else asked
        if pause > self.manners.patience or paused >= PAUSES:
            # Not even another run, if this one is cancelled: the host said when.
            raise RateLimited(
                f"{shown(url)}: the host answered {fetched.status} and asks to wait {pause:g} s",
                after=pause,
                key=True,
            )
        self._ready = time.monotonic() + max(self.delay, pause + MARGIN)

    async def _once(self, url: str, limit: int) -> Fetched:
        """Make one request, when it is time for one."""
        await asyncio.sleep(max(self._ready - time.monotonic(), 0.0))
        try:
            async with asyncio.timeout(self.manners.page_seconds):
                return await self._request(url, limit)
        finally:
            self._ready = time.monotonic() + self.delay

    async def _request(self, url: str, limit: int) -> Fetched:
        parts, host = urlsplit(url), host_of(url)
        port = parts.port or PORTS[parts.scheme]
        private = self.manners.allow_private(url)
        addresses = await resolve(host, port, allow_private=private)
        for place, address in enumerate(addresses, 1):
            request = self._client.build_request(
                "GET",
                # To the address that was checked; the name is for the certificate and the host.
                httpx.URL(url).copy_with(host=address),
                headers={"Host": parts.netloc},
                extensions={"sni_hostname": host},
            )
            try:
                response = await self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if place == len(addresses):
                    raise
                continue
            try:
                return await _read(url, response, limit)
            finally:
                await response.aclose()
        raise CrawlFailed(f"the host {shown(host)} has no address")


async def _read(url: str, response: httpx.Response, limit: int) -> Fetched:
    headers = {name.lower(): value for name, value in response.headers.items()}
    status = response.status_code
    if status != 200:
        return Fetched(url, status, headers=headers)
    inflater = Inflater(headers.get("content-encoding", ""), limit)
    try:
        async for chunk in response.aiter_raw():
            inflater.add(chunk)
    except TooLarge:
        status = 0
    return Fetched(url, status, inflater.content(), headers)


def _described(error: Exception) -> str:
    """Return what went wrong, in words; some errors of HTTP have none."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "the host did not answer in time"
    return str(error) or f"the host was not reached ({type(error).__name__})"
