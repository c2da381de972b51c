"""The stream: one look for all readers, the newest only, and an end when it has to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from headrace.admin.keys import create_key, revoke_key
from headrace.errors import EngineUnavailable
from headrace.server.dashboard.live.views import PACE, Reader, View, pace
from headrace.server.dashboard.render import digest
from headrace.server.listen import listening
from tests.dashboard.conftest import MakeSite, Site
from tests.dashboard.test_session import client, signed_in, token
from tests.dashboard.trial import TRIAL
from tests.server.conftest import a_key
from tests.support.processes import until


class Stream:
    """What one browser hears."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()
        self.ids: list[str] = []

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The next event and its data."""
        kind = ""
        async with asyncio.timeout(60):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name == "id":
                    self.ids.append(value)
                elif name == "event":
                    kind = value
                elif name == "data":
                    return kind, json.loads(value)
        return "end", {}

    async def parts(self) -> dict[str, str]:
        kind, data = await self.next()
        assert kind == "parts", kind
        return data

    async def until(self, text: str) -> dict[str, str]:
        while True:
            parts = await self.parts()
            if any(text in html for html in parts.values()):
                return parts


@asynccontextmanager
async def stream(
    browser: httpx.AsyncClient, view: str = "/trial", **headers: str
) -> AsyncIterator[Stream]:
    asked = browser.stream("GET", "/ui/stream", params={"view": view}, headers=headers)
    async with asked as response:
        assert response.status_code == 200, await response.aread()
        found = Stream(response)
        assert (await found.next())[0] == "hello"
        yield found


async def test_a_change_is_sent_and_what_stays_is_not(site: Site) -> None:
    async with client(site) as browser, stream(browser) as heard:
        assert len(heard.ids) == 1
        whole = await heard.parts()
        assert set(whole) == {"live-trial", "live-banner"}
        TRIAL.count = 7
        changed = await heard.parts()
        assert set(changed) == {"live-trial"}
        assert '<p id="count">7</p>' in changed["live-trial"]
        state = heard.ids[-1]
    # Whoever has that state already is told nothing until something changes.
    headers = {"Last-Event-ID": state}
    async with client(site) as browser, stream(browser, **headers) as heard:
        looks = TRIAL.looks
        await until(lambda: TRIAL.looks >= looks + 2, "two more looks")
        TRIAL.count = 8
        assert "8</p>" in (await heard.parts())["live-trial"]
        assert len(heard.ids) == 2


def looking() -> list[asyncio.Task[Any]]:
    """Who looks at views now."""
    return [each for each in asyncio.all_tasks() if each.get_name() == "headrace dashboard view"]


async def test_fifty_readers_ask_no_more_often_than_one(site: Site) -> None:
    async with client(site) as browser, stream(browser) as heard:
        await heard.parts()
        began, looks = asyncio.get_running_loop().time(), TRIAL.looks
        await until(lambda: TRIAL.looks >= looks + 4, "four more looks")
        # At most twice a second.
        assert asyncio.get_running_loop().time() - began > 1.4
    limits = httpx.Limits(max_connections=60)
    async with AsyncExitStack() as stack:
        crowd = await stack.enter_async_context(
            httpx.AsyncClient(base_url=site.url, limits=limits, timeout=30)
        )
        readers = [await stack.enter_async_context(stream(crowd)) for _ in range(50)]
        began, before = asyncio.get_running_loop().time(), TRIAL.looks
        TRIAL.count = 1
        await asyncio.gather(*(each.until(">1</p>") for each in readers))
        TRIAL.count = 2
        await asyncio.gather(*(each.until(">2</p>") for each in readers))
        # Each of two changes was seen by one look; the others come as often as for one reader.
        took = asyncio.get_running_loop().time() - began
        assert TRIAL.looks - before <= 3 + took / PACE
    await until(lambda: not looking(), "the end of all looks, because nobody reads")


def test_looks_are_less_often_where_they_take_long() -> None:
    """A hundredth of the time at first, and never so seldom that what is shown is a second old,
    unless the store needs a rest of four times as long as it was asked.
    """
    found = [(took, pace(took)) for took in (0.001, 0.01, 0.012, 0.05, 0.15, 1.0)]
    assert found == [
        (0.001, 0.5),
        (0.01, 0.5),
        (0.012, 0.6),
        (0.05, 0.75),
        (0.15, 0.75),
        (1.0, 5.0),
    ]


async def test_callers_who_may_see_different_things_have_different_views(
    make_site: MakeSite,
) -> None:
    site = await make_site()
    some = await a_key(site.app, "read", queues=["mail"])
    async with (
        signed_in(site, await a_key(site.app)) as admin,
        signed_in(site, some) as reader,
        stream(admin) as all_,
        stream(reader) as part,
    ):
        seen = (await all_.parts())["live-trial"]
        assert "admin" in seen
        # Its own token, in a part that others share.
        assert await token(admin) in seen
        seen = (await part.parts())["live-trial"]
        assert "read mail" in seen
        assert "/trial/act" not in seen


async def test_a_slow_reader_gets_the_newest_only() -> None:
    reader = Reader("new")
    for number in range(1_000):
        parts = {"live-a": str(number), "live-b": "same"}
        changed = parts if number == 0 else {"live-a": str(number)}
        reader.offer(changed, parts, f"state {number}")
    assert await reader.next(0) == {"live-a": "999", "live-b": "same"}
    assert reader.state == "state 999"
    assert await reader.next(0) == {}


@pytest.mark.parametrize("while_looking", [False, True])
async def test_a_page_does_not_go_back_to_what_was_before_it(*, while_looking: bool) -> None:
    shown, begun, go_on = {"part": "open"}, asyncio.Event(), asyncio.Event()

    async def look() -> dict[str, str]:
        seen = dict(shown)
        begun.set()
        await go_on.wait()
        return seen

    view, first = View(look), Reader("new")
    view.join(first)
    try:
        await begun.wait()
        if not while_looking:
            go_on.set()
            assert await first.next(60) == {"part": "open"}
        # Somebody sends a form, gets a new page and follows it.
        shown["part"] = "paused"
        second = Reader(digest(shown))
        view.join(second)
        go_on.set()
        if while_looking:
            assert await first.next(60) == {"part": "open"}
        assert await first.next(60) == {"part": "paused"}
        assert await second.next(0) == {}
        shown["part"] = "resumed"
        assert await second.next(60) == {"part": "resumed"}
    finally:
        assert view.task is not None
        view.task.cancel()


async def test_an_engine_that_is_away_is_said_in_words(site: Site) -> None:
    async with client(site) as browser, stream(browser) as heard:
        await heard.parts()
        TRIAL.error = EngineUnavailable("the database does not answer")
        parts = await heard.parts()
        assert set(parts) == {"live-banner"}
        assert "The database does not answer." in parts["live-banner"]
        assert "Traceback" not in parts["live-banner"]
        page = await browser.get("/ui/trial")
        assert page.status_code == 503
        assert "The database does not answer." in page.text
        TRIAL.error = None
        assert "problem" not in (await heard.parts())["live-banner"]


@pytest.mark.parametrize("how", ["revoked", "signed out"])
async def test_a_stream_ends_with_its_session(make_site: MakeSite, how: str) -> None:
    site = await make_site()
    await a_key(site.app)
    key, secret = await create_key(site.app, name="gone", scope="admin")
    async with signed_in(site, secret) as browser, stream(browser) as heard:
        await heard.parts()
        if how == "revoked":
            await revoke_key(site.app, key.id)
        else:
            form = {"token": await token(browser)}
            await browser.post("/ui/session/end", data=form)
        assert await heard.next() == ("leave", {})
        assert await heard.next() == ("end", {})


async def test_streams_are_bounded_and_end_with_the_server(make_site: MakeSite) -> None:
    site = await make_site()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(
            listening(site.app, host="127.0.0.1", port=0, most_streams=1)
        )
        async with (
            httpx.AsyncClient(base_url=url, timeout=30) as browser,
            stream(browser) as heard,
        ):
            await heard.parts()
            second = await browser.get("/ui/stream?view=/trial")
            assert second.status_code == 503
            ending = asyncio.create_task(stack.aclose())
            assert (await heard.next())[0] == "end"
            await ending


async def test_only_pages_can_be_followed(site: Site) -> None:
    async with client(site) as browser:
        for view, status in (("/nothing", 404), ("/trial?x=1", 422), ("//evil.example", 404)):
            answer = await browser.get("/ui/stream", params={"view": view})
            assert answer.status_code == status, view
