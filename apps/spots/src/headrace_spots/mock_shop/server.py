"""A server of shops that do not exist. It counts what crawlers do, and behaves badly if asked."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from headrace_spots.mock_shop import html
from headrace_spots.mock_shop.plans import DEMO, ShopPlan

REASONS = {200: "OK", 302: "Found", 404: "Not Found", 429: "Too Many Requests", 500: "Error"}
LONGEST_HEAD = 16_384


@dataclass(slots=True)
class Visits:
    """What crawlers have done."""

    requests: list[str] = field(default_factory=list)
    """The path of each request, in order."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each path was answered with 200."""
    most_at_once: int = 0
    """The most requests to one host at the same time."""
    too_early: list[str] = field(default_factory=list)
    """Requests before the end of a pause that was asked for."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class MockShop:
    """Shops on one port of this machine. `busy_every`: each so many requests one is answered 429,
    with a pause of `busy_seconds`. `broken` paths answer 500 the first time, `redirects` lead away.
    `slow_seconds` is how long each answer takes.
    """

    def __init__(
        self,
        plans: Sequence[ShopPlan] = DEMO,
        *,
        hosts: Sequence[str] = ("127.0.0.1",),
        port: int = 0,
        busy_every: int = 0,
        busy_seconds: int = 1,
        broken: Sequence[str] = (),
        redirects: dict[str, str] | None = None,
        robots: str = html.ROBOTS,
        slow_seconds: float = 0.0,
        on_request: Callable[[str], None] | None = None,
    ) -> None:
        self.visits = Visits()
        self.port = port
        self.robots = robots
        self._plans = {each.slug: each for each in plans}
        self._hosts = list(hosts)
        self._busy_every = busy_every
        self._busy_seconds = busy_seconds
        self._broken = set(broken)
        self._redirects = dict(redirects or {})
        self._slow = slow_seconds
        self._on_request = on_request
        self._at_once: Counter[str] = Counter()
        self._pause_ends: dict[str, float] = {}
        self._count = 0
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. The port is free to choose for the system."""
        for host in self._hosts:
            server = await asyncio.start_server(self._serve, host, self.port, limit=LONGEST_HEAD)
            self.port = server.sockets[0].getsockname()[1]
            self._servers.append(server)

    async def stop(self) -> None:
        """Listen no longer."""
        for server in self._servers:
            server.close()
            await server.wait_closed()

    def url(self, path: str = "/", host: str | None = None) -> str:
        """Return the address of a page."""
        return f"http://{host or self._hosts[0]}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ", 2)[1]
            host = next(
                (line[5:].strip() for line in head.split("\r\n") if line[:5].lower() == "host:"), ""
            ).partition(":")[0]
            self._at_once[host] += 1
            self.visits.most_at_once = max(self.visits.most_at_once, self._at_once[host])
            try:
                if self._slow:
                    await asyncio.sleep(self._slow)
                answer = self._answer(target, host)
            finally:
                self._at_once[host] -= 1
            writer.write(_encoded(answer))
            await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def _answer(self, target: str, host: str) -> _Answer:
        self._count += 1
        self.visits.requests.append(target)
        if self._on_request is not None:
            self._on_request(target)
        if time.monotonic() < self._pause_ends.pop(host, 0.0):
            self.visits.too_early.append(target)
        if self._busy_every and self._count % self._busy_every == 0:
            self._pause_ends[host] = time.monotonic() + self._busy_seconds
            return _Answer(429, headers=(("Retry-After", str(self._busy_seconds)),))
        if target in self._broken:
            self._broken.discard(target)
            return _Answer(500)
        if target in self._redirects:
            return _Answer(302, headers=(("Location", self._redirects[target]),))
        answer = self._page(target)
        if answer.status == 200:
            self.visits.counts[target] += 1
        return answer

    def _page(self, target: str) -> _Answer:
        parts, today = urlsplit(target), datetime.now(UTC).date()
        if parts.path == "/robots.txt":
            return _Answer(200, self.robots.encode(), (("Content-Type", "text/plain"),))
        if parts.path == "/":
            return _text(html.index_page(list(self._plans.values())), "utf-8")
        slug, _, rest = parts.path.strip("/").partition("/")
        plan = self._plans.get(slug)
        if plan is None:
            return _Answer(404)
        return _shop_page(plan, rest, parts.query, today)


def _shop_page(plan: ShopPlan, rest: str, query: str, today: date) -> _Answer:
    if rest == "":
        return _text(html.first_page(plan, today), plan.charset)
    if rest == "about":
        return _text(html.about_page(plan), plan.charset)
    if rest == "reviews":
        number = parse_qs(query).get("page", ["1"])[0]
        if number.isdecimal() and 1 <= int(number) <= plan.pages:
            return _text(html.review_page(plan, int(number), today), plan.charset)
    return _Answer(404)


def _text(text: str, charset: str) -> _Answer:
    # No charset in the header: the page says it, as many old ones do.
    codec = "cp949" if charset == "euc-kr" else charset
    return _Answer(200, text.encode(codec, "replace"), (("Content-Type", "text/html"),))


def _encoded(answer: _Answer) -> bytes:
    head = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Answer')}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
    return "\r\n".join(head).encode("latin-1") + answer.body
