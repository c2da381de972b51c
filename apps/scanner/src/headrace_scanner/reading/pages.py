"""Products of pages whose scripts have to run first: read by a browser."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from playwright.async_api import Browser, Page, Response
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from headrace_scanner.errors import Blocked, BrowserFailed, Unreached
from headrace_scanner.platforms import Platform
from headrace_scanner.reading.addresses import check_url, resolve, shown
from headrace_scanner.reading.answers import read_name, read_price, read_status
from headrace_scanner.reading.browser import opened
from headrace_scanner.reading.http import GONE, REFUSED
from headrace_scanner.reading.manners import Manners
from headrace_scanner.store.records import SaleStatus, Seen

# What a page of any shop is asked for, in one go: texts of selectors, null where there is none.
_TEXTS = "all => all.map(one => one ? document.querySelector(one)?.textContent ?? null : null)"


class BrowserProducts:
    """Reads products with one browser, one page after the other."""

    def __init__(self, browser: Browser, platform: Platform, manners: Manners) -> None:
        self._browser = browser
        self._platform = platform
        self._manners = manners

    @classmethod
    @asynccontextmanager
    async def opened(cls, platform: Platform, manners: Manners) -> AsyncIterator[Self]:
        """Start the browser of the settings, and end it afterwards."""
        private = manners.allows_private(platform.base or "")
        async with opened(manners.browser, private=private) as browser:
            yield cls(browser, platform, manners)

    async def read(self, url: str) -> Seen:
        """Return what the shop's page says when its scripts have run."""
        check_url(url)
        # The browser looks the name up again; lightpanda refuses private addresses itself.
        await resolve(url, allow_private=self._manners.allows_private(url))
        seconds = self._manners.visit_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._visit(url)
        except (TimeoutError, PlaywrightTimeout):
            self._check_browser()
            raise Unreached(f"{shown(url)} showed no product within {seconds:g} s") from None
        except PlaywrightError as error:
            self._check_browser()
            reason = str(error).partition("\n")[0]
            raise Unreached(f"{shown(url)} was not reached: {reason}") from None

    def _check_browser(self) -> None:
        if not self._browser.is_connected():
            raise BrowserFailed("the browser ended while it read a page")

    async def _visit(self, url: str) -> Seen:
        # Cookies of one product are not for the next.
        context = await self._browser.new_context()
        try:
            page = await context.new_page()
            milliseconds = self._manners.visit_seconds * 1000
            response = await page.goto(url, timeout=milliseconds, wait_until="commit")
            return await self._read(page, response)
        finally:
            with contextlib.suppress(PlaywrightError):
                await context.close()

    async def _read(self, page: Page, response: Response | None) -> Seen:
        platform, status = self._platform, 200 if response is None else response.status
        if status in GONE:
            return Seen(sale_status=SaleStatus.GONE)
        if status in REFUSED:
            after = None if response is None else response.headers.get("retry-after", "")
            seconds = float(after) if after and after.isdecimal() else None
            raise Blocked(f"the shop answered {status}", seconds)
        if status >= 400:
            raise Unreached(f"{shown(page.url)} answered {status}")
        wanted = [each for each in (platform.wait_for, platform.blocked) if each]
        if wanted:
            # The scripts of the page are done when this is there; no other sign is sure.
            await page.wait_for_selector(
                ", ".join(wanted), state="attached", timeout=self._manners.visit_seconds * 1000
            )
        selectors = [platform.name, platform.price, platform.status]
        selectors += [platform.sold_out, platform.blocked]
        name, price, state, sold_out, blocked = await page.evaluate(_TEXTS, selectors)
        if blocked is not None:
            raise Blocked("the shop shows a page that is no product")
        sale_status = read_status(platform, state or "")
        if sold_out is not None:
            sale_status = SaleStatus.SOLD_OUT
        return Seen(name=read_name(name), price=read_price(price), sale_status=sale_status)
