"""Open circuit breakers on the page of lanes, and closing them there."""

from __future__ import annotations

import shlex

from headrace.breakers.by_hand import open_by_hand
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visits import audited, visitor, words
from tests.server.conftest import a_key

HOSTILE = "<script>alert('$(id)')</script>/b?x#y; headrace keys revoke x"


async def test_an_open_breaker_is_shown_and_closed(make_site: MakeSite) -> None:
    site = await make_site()
    for queue in ("mail", "scans"):
        await open_by_hand(site.app.engine, (queue, HOSTILE), 600, by="ada", reason="they deploy")
    reader, admin = await a_key(site.app, "read"), await a_key(site.app, queues=["mail"])
    async with visitor(site, reader) as who:
        page = await who.get("/lanes")
        assert "opened by hand by ada: they deploy" in words(page)
        assert HOSTILE in words(page)
        assert "<script>alert" not in page
        assert "/breakers/close" not in page
        await who.send("/breakers/close", 403, queue="mail", lane=HOSTILE)
        assert "The circuit breaker of lane" in await who.words("/")
    async with visitor(site, await a_key(site.app, "write")) as who:
        assert "/breakers/close" not in await who.get("/lanes")
        await who.send("/breakers/close", 403, queue="mail", lane=HOSTILE)
    async with visitor(site, admin) as who:
        page = await who.get("/lanes")
        assert "/breakers/close" in page
        assert "scans" not in page
        # The line for the shell means this lane, whatever is in its name.
        line = f"headrace breakers close mail {shlex.quote(HOSTILE)}"
        assert line in words(page)
        assert line in await who.words("/")
        await who.send("/breakers/close", 403, queue="scans", lane=HOSTILE)
        assert "is closed" in await who.send("/breakers/close", queue="mail", lane=HOSTILE)
        assert "closed already" in await who.send("/breakers/close", queue="mail", lane=HOSTILE)
        assert "they deploy" not in await who.words("/lanes")
    assert ("test admin", "breaker.close", f"mail/{HOSTILE}") in await audited(site)
    [left] = await site.app.breakers()
    assert left.queue == "scans"
