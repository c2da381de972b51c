"""One reader for a batch of products: it asks a shop for one product after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from headrace_scanner.errors import InvalidProduct
from headrace_scanner.platforms import Platform
from headrace_scanner.reading.addresses import check_url
from headrace_scanner.reading.answers import read_json, read_page
from headrace_scanner.reading.http import HttpReader
from headrace_scanner.reading.manners import Manners
from headrace_scanner.store.records import SaleStatus, Seen

GONE_SEEN = Seen(sale_status=SaleStatus.GONE)


class Reader(Protocol):
    """Reads products."""

    async def read(self, url: str) -> Seen:
        """Return what the shop says. Raises `Blocked`, `Unreached`, `InvalidProduct`."""


@asynccontextmanager
async def opened_reader(platform: Platform, manners: Manners) -> AsyncIterator[Reader]:
    """Yield the reader of a platform."""
    if platform.reader == "browser":
        async with _browser_reader(platform, manners) as reader:
            yield reader
    elif platform.reader in ("api", "page"):
        async with HttpReader(manners) as http:
            yield _HttpProducts(platform, http)
    else:
        raise InvalidProduct(f"platform {platform.platform} has no products of its own")


class _HttpProducts:
    def __init__(self, platform: Platform, http: HttpReader) -> None:
        self._platform = platform
        self._http = http

    async def read(self, url: str) -> Seen:
        answer = await self._http.get(check_url(url))
        if answer.content is None:
            return GONE_SEEN
        if self._platform.reader == "api":
            return read_json(self._platform, answer.content)
        return read_page(answer.content)


@asynccontextmanager
async def _browser_reader(platform: Platform, manners: Manners) -> AsyncIterator[Reader]:
    # Only workers of such platforms pay for the import.
    from headrace_scanner.reading.pages import BrowserProducts  # noqa: PLC0415

    async with BrowserProducts.opened(platform, manners) as reader:
        yield reader
