"""Requests without a browser: limited in size and time, to addresses that were checked."""

from __future__ import annotations

import asyncio
import functools
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from headrace_scanner.errors import Blocked, Unreached
from headrace_scanner.reading.addresses import resolve, shown
from headrace_scanner.reading.manners import Manners

REFUSED = (401, 403, 429)
GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shop has answered. `content` is None if the product is gone."""

    content: bytes | None
    content_type: str = ""


class HttpReader:
    """Asks shops, one request at a time."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners
        self._client: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        manners = self._manners
        self._client = httpx.AsyncClient(
            # Certificates of authorities take their time to be read.
            verify=await asyncio.to_thread(_trusted),
            follow_redirects=False,
            trust_env=False,
            # A visit has one time limit, whatever takes so long.
            timeout=None,  # noqa: S113
            # Connections end with their request: the next address is checked again.
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={
                "User-Agent": manners.user_agent,
                "Accept": "application/json, text/html;q=0.9, */*;q=0.1",
                "Accept-Language": "ko,en;q=0.8",
            },
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def get(self, url: str) -> Answer:
        """Return what a shop answers. Raises `Blocked`, `Unreached` and `InvalidProduct`."""
        try:
            async with asyncio.timeout(self._manners.visit_seconds):
                return await self._get(url)
        except TimeoutError:
            raise Unreached(
                f"{shown(url)} did not answer within {self._manners.visit_seconds:g} s"
            ) from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unreached(f"{shown(url)} was not reached: {reason}") from None

    async def _get(self, url: str) -> Answer:
        parts = urlsplit(url)
        addresses = await resolve(url, allow_private=self._manners.allows_private(url))
        for place, address in enumerate(addresses, 1):
            request = self._client.build_request(
                "GET",
                # To the address that was checked; the name is for the certificate and the host.
                httpx.URL(url).copy_with(host=address),
                headers={"Host": parts.netloc},
                extensions={"sni_hostname": parts.hostname},
            )
            try:
                response = await self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if place == len(addresses):
                    raise
                continue
            try:
                return await self._read(url, response)
            finally:
                await response.aclose()
        raise Unreached(f"the host of {shown(url)} has no address")

    async def _read(self, url: str, response: httpx.Response) -> Answer:
        status = response.status_code
        if status in GONE:
            return Answer(None)
        if status in REFUSED:
            raise Blocked(f"the shop answered {status}", _seconds(response.headers))
        if status != 200:
            where = response.headers.get("location")
            led = f" and leads to {shown(where)}" if where else ""
            raise Unreached(f"{shown(url)} answered {status}{led}")
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > self._manners.largest_page:
                raise Unreached(f"{shown(url)} has more than {self._manners.largest_page:,} bytes")
        return Answer(bytes(content), response.headers.get("content-type", ""))


@functools.cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def _seconds(headers: httpx.Headers) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None
