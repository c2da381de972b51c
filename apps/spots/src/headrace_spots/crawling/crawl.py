"""The crawl of one shop: from its first page to the last, and again from where it was cut off.

The order of the pages follows from their content alone. An attempt that begins again walks the same
way, reads from the lake what is kept there, and asks the host only for the rest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from headrace_spots.crawling.charset import decode
from headrace_spots.crawling.fetch import Fetcher
from headrace_spots.crawling.kept import ROBOTS, KeptPages
from headrace_spots.crawling.links import Links, links_of
from headrace_spots.crawling.pages import Fetched
from headrace_spots.crawling.robots import LARGEST, Robots
from headrace_spots.crawling.urls import lane_of, linked, origin_of, shown
from headrace_spots.errors import CrawlFailed, InvalidAddress, RobotsRefused

REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5
# Links that are remembered for each page that may be fetched.
LINKS_PER_PAGE = 4

OnPage = Callable[[int, int], Awaitable[None]]


class Crawled(msgspec.Struct, kw_only=True):
    """What a crawl has found: kept with the job, and shown in the report."""

    start: str
    """Where the shop begins, after redirects."""
    pages: int = 0
    refused: int = 0
    """Pages that robots.txt does not allow."""
    failed: int = 0
    """Pages that were not there, or not to be had."""
    left: int = 0
    """Pages that were known and beyond the limit."""


class Crawl:
    """One crawl. `on_page` is told after each page how many were looked at, and how many are known
    at least.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        kept: KeptPages,
        *,
        most_pages: int,
        follow: Sequence[str] = (),
        on_page: OnPage | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._kept = kept
        self._most = most_pages
        self._follow = follow
        self._on_page = on_page
        self._robots: dict[str, Robots] = {}

    async def run(self, url: str) -> Crawled:
        """Fetch what is not kept; return what there is."""
        first = await self._first(url)
        result = Crawled(start=first.url)
        waiting: deque[str] = deque([first.url])
        seen = {url, first.url}
        looked_at = 0
        while waiting and looked_at < self._most:
            page = waiting.popleft()
            if not (await self._rules(page)).allows(page):
                result.refused += 1
                continue
            looked_at += 1
            fetched = await self._answer(page)
            if fetched is None or not (fetched.is_page or fetched.status in REDIRECTS):
                result.failed += 1
                continue
            result.pages += fetched.is_page
            for link in await self._leads(fetched, first.url):
                if link not in seen and len(seen) < self._most * LINKS_PER_PAGE:
                    seen.add(link)
                    waiting.append(link)
            if self._on_page is not None:
                await self._on_page(looked_at, min(looked_at + len(waiting), self._most))
        result.left = len(waiting)
        return result

    async def _first(self, url: str) -> Fetched:
        """Return the first page of the shop, after redirects. They stay on the host: its lane is
        what this job holds.
        """
        page = url
        for _ in range(MOST_REDIRECTS):
            if not (await self._rules(page)).allows(page):
                raise RobotsRefused(f"robots.txt of the host does not allow {shown(page)}")
            fetched = await self._answer(page, needed=True)
            if fetched is None:
                raise CrawlFailed(f"{shown(page)} was not to be had")
            if fetched.status not in REDIRECTS:
                break
            target = linked(page, fetched.headers.get("location", ""))
            if target is None:
                raise InvalidAddress(f"{shown(page)} leads nowhere")
            if lane_of(target) != lane_of(url):
                raise InvalidAddress(
                    f"{shown(page)} leads to {shown(target)}, which is another host; add that one"
                )
            page = target
        else:
            raise InvalidAddress(f"{shown(url)} leads in circles")
        if fetched.status == 0:
            largest = self._fetcher.manners.largest_page
            raise InvalidAddress(f"{shown(page)} has more than {largest:,} bytes")
        if fetched.status >= 500:
            raise CrawlFailed(f"{shown(page)}: the host answered {fetched.status}")
        if fetched.status != 200:
            raise InvalidAddress(f"{shown(page)}: the host answered {fetched.status}")
        if not fetched.is_page:
            raise InvalidAddress(f"{shown(page)} is {fetched.content_type[:60]}, not a page (HTML)")
        return fetched

    async def _answer(self, url: str, *, needed: bool = False) -> Fetched | None:
        """Return the answer of a page, kept or fetched; None if there was none. Errors of the host
        are not kept: a later attempt asks again.
        """
        found = await self._kept.get(url)
        if found is not None:
            return found
        try:
            fetched = await self._fetcher.get(url)
        except CrawlFailed:
            if needed:
                raise
            return None
        if fetched.status >= 500:
            return fetched
        if not fetched.is_page:
            # What is no page is not worth its bytes.
            fetched = Fetched(fetched.url, fetched.status, headers=fetched.headers)
        await self._kept.put(fetched)
        return fetched

    async def _leads(self, fetched: Fetched, start: str) -> list[str]:
        if fetched.status in REDIRECTS:
            target = linked(fetched.url, fetched.headers.get("location", ""))
            return [target] if target is not None and lane_of(target) == lane_of(start) else []
        found: Links = await asyncio.to_thread(
            lambda: links_of(
                decode(fetched.content, fetched.content_type), fetched.url, start, self._follow
            )
        )
        return [*found.following, *found.others]

    async def _rules(self, url: str) -> Robots:
        """Return the rules of a page's origin; they are kept as pages are."""
        origin = origin_of(url)
        if origin not in self._robots:
            place = f"{origin}/robots.txt"
            fetched = await self._kept.get(place)
            if fetched is None:
                fetched = await self._rules_of_host(place, url)
                if fetched.status < 500:
                    await self._kept.put(fetched, folder=ROBOTS)
            rules = Robots.of(fetched, self._fetcher.manners.user_agent)
            self._fetcher.delay = max(self._fetcher.delay, rules.delay())
            self._robots[origin] = rules
        return self._robots[origin]

    async def _rules_of_host(self, place: str, url: str) -> Fetched:
        fetched = await self._fetcher.get(place, limit=LARGEST)
        for _ in range(MOST_REDIRECTS):
            if fetched.status not in REDIRECTS:
                break
            target = linked(fetched.url, fetched.headers.get("location", ""))
            if target is None or lane_of(target) != lane_of(url):
                return Fetched(place, 404)
            fetched = await self._fetcher.get(target, limit=LARGEST)
        return Fetched(place, fetched.status, fetched.content, fetched.headers)
