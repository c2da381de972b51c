"""Eight shops on one port of this machine. They log who asks for what and when, so that others can
judge whether two were there at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from headrace_scanner.mock_shops import pages
from headrace_scanner.mock_shops.goods import Goods, drifted, goods_of
from headrace_scanner.platforms import NAMES

REASONS = {200: "OK", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests", 500: "Error"}
LONGEST_HEAD = 16_384
# The path of a product below the name of its shop, before its id.
PATHS = {
    "hwahae": "/api/products/",
    "zigzag": "/api/catalog/products/",
    "musinsa": "/api2/goods/",
    "oliveyoung": "/store/goods/getGoodsDetail.do",
    "ably": "/goods/",
    "kurly": "/goods/",
    "extract": "/p/",
    "default": "/p/",
}


@dataclass(slots=True)
class Visit:
    """One request. `ended` is None while it is being answered."""

    shop: str
    product: str
    script: bool
    """Whether the script of a page has asked."""
    began: float
    ended: float | None = None
    answered: bool = False
    """Whether all was sent; else the asker has gone before."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes = b""
    kind: str = "text/html"
    headers: tuple[tuple[str, str], ...] = ()


class MockShops:
    """The shops. `slow_seconds` is how long each answer takes; with `drift` products change now and
    then. `held` shops answer nobody until they are released.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        slow_seconds: float = 0.0,
        drift: bool = False,
        on_visit: Callable[[Visit], None] | None = None,
    ) -> None:
        self.port = port
        self.slow_seconds = slow_seconds
        self.visits: list[Visit] = []
        self.held: set[str] = set()
        self._drift = drift
        self._on_visit = on_visit
        self._goods: dict[tuple[str, str], Goods] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

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
        """Listen on this machine."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=LONGEST_HEAD
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Return the address of all shops; each is below its name."""
        return f"http://127.0.0.1:{self.port}"

    def put(self, shop: str, product: str, **fields: Any) -> Goods:
        """Let a shop say something else about a product from now on."""
        goods = replace(self.look(shop, product), **fields)
        self._goods[shop, product] = goods
        return goods

    def look(self, shop: str, product: str) -> Goods:
        """Return what a shop says about a product."""
        return self._goods.get((shop, product)) or goods_of(shop, product)

    def page(self, shop: str, product: str) -> str:
        """Return the address of a product."""
        if shop == "oliveyoung":
            return f"{self.url}/{shop}{PATHS[shop]}?goodsNo={product}"
        return f"{self.url}/{shop}{PATHS[shop]}{product}"

    def hold(self, *shops: str) -> None:
        """Let requests to these shops wait."""
        self.held |= set(shops)

    def release(self, *shops: str) -> None:
        """Answer those who wait at these shops; at all of them if none is named."""
        self.held -= set(shops or NAMES)
        self._released.set()
        self._released = asyncio.Event()

    # -- serving -------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            visit = _visit(head.split(" ", 2)[1])
            if visit is None:
                writer.write(_encoded(_Answer(404)))
                await writer.drain()
            else:
                await self._visited(visit, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _visited(
        self, visit: Visit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.visits.append(visit)
        if self._on_visit is not None:
            self._on_visit(visit)
        try:
            # Who hangs up, or is killed, is no longer there: that is the end of the visit.
            left = asyncio.create_task(reader.read(1))
            wait = asyncio.create_task(self._wait(visit))
            done, _ = await asyncio.wait({left, wait}, return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            wait.cancel()
            await asyncio.gather(left, wait, return_exceptions=True)
            if wait in done:
                answer = _encoded(self._answer(visit))
                # Whoever has the answer may ask for the next product before this is told so.
                visit.ended = time.monotonic()
                writer.write(answer)
                await writer.drain()
                visit.answered = True
        finally:
            visit.ended = visit.ended or time.monotonic()

    async def _wait(self, visit: Visit) -> None:
        slow = 3600.0 if self.look(visit.shop, visit.product).behaviour == "slow" else 0.0
        await asyncio.sleep(self.slow_seconds + slow)
        while visit.shop in self.held:
            await self._released.wait()

    def _answer(self, visit: Visit) -> _Answer:
        shop, product = visit.shop, visit.product
        goods = self.look(shop, product)
        if not visit.script:
            self._counts[shop, product] += 1
            if self._drift:
                goods = drifted(goods, shop, product, self._counts[shop, product] - 1)
                self._goods[shop, product] = goods
        return _refused(shop, goods) or self._page(visit, goods)

    @staticmethod
    def _page(visit: Visit, goods: Goods) -> _Answer:
        shop, product = visit.shop, visit.product
        if shop in ("extract", "default"):
            return _Answer(200, pages.linked_data_page(goods))
        if shop not in pages.BROWSER_SHOPS:
            return _Answer(200, pages.json_of(shop, goods), "application/json")
        if not visit.script:
            hungry = goods.behaviour == "hungry"
            return _Answer(200, pages.hungry_page() if hungry else pages.script_page(shop, product))
        if goods.behaviour == "no_price":
            return _Answer(200, b'{"price": null}', "application/json")
        return _Answer(200, pages.script_data(shop, goods), "application/json")


def _refused(shop: str, goods: Goods) -> _Answer | None:
    match goods.behaviour:
        case "gone":
            return _Answer(404)
        case "broken":
            return _Answer(500)
        case "busy":
            return _Answer(429, headers=(("Retry-After", "600"),))
        case "blocked":
            # Some shops say so, others show a page.
            status = 200 if shop in pages.BROWSER_SHOPS else 403
            return _Answer(status, pages.blocked_page())
    return None


def _visit(target: str) -> Visit | None:
    parts = urlsplit(target)
    _, shop, rest = (*parts.path.split("/", 2), "", "")[:3]
    if shop not in NAMES:
        return None
    script = rest.startswith("data/")
    if script:
        product = rest.removeprefix("data/")
    elif shop == "oliveyoung":
        product = parse_qs(parts.query).get("goodsNo", [""])[0]
    else:
        product = f"/{rest}".removeprefix(PATHS[shop]) if PATHS[shop][1:] in rest else ""
    if not product:
        return None
    return Visit(shop, unquote(product), script, time.monotonic())


def _encoded(answer: _Answer) -> bytes:
    head = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Answer')}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head += [f"Content-Type: {answer.kind}; charset=utf-8", f"Content-Length: {len(answer.body)}"]
    return "\r\n".join([*head, "Connection: close", "", ""]).encode("latin-1") + answer.body
