"""Alerts: what fires, the rules, silences by a form, and tests of receivers."""

from __future__ import annotations

from tests.dashboard.conftest import MakeSite, Site, Windows, check_looks, is_live
from tests.dashboard.visits import audited, visitor, words
from tests.publishing.receiver import a_receiver
from tests.server.conftest import a_key
from tests.support.processes import until
from tests.support.verbs import enqueue

HOSTILE = "<script>alert(1)</script>"


async def a_scene(site: Site, url: str) -> None:
    """A rule that fires about two queues, one that waits, and one whose receiver is missing."""
    app = site.app
    await app.put_destination("ops", "slack", {"url": f"{url}/topsecret"})
    for queue in ("mail", "scans"):
        await enqueue(app.engine, queue=queue)
    await app.put_alert_rule("long", "queue_length", "ops", above=0, summary=HOSTILE)
    await app.put_alert_rule("old", "queue_length", "ops", above=0, for_="1h", queues="mail")
    await app.put_alert_rule("wrong", "dead_letters", "nobody")


async def test_an_empty_page_says_what_to_do(site: Site) -> None:
    async with visitor(site) as who:
        assert "There are no rules: nobody is told" in await who.words("/alerts")


async def test_alerts_are_shown_silenced_and_tested(make_site: MakeSite) -> None:
    site = await make_site()
    async with a_receiver() as receiver, visitor(site, await a_key(site.app)) as who:
        await a_scene(site, receiver.url)
        site.app._alert_loop.wake()  # type: ignore[union-attr]
        # A rule that was added later may be looked at a round later.
        page = await who.sees("/alerts", "Not for long enough yet")
        said = words(page)
        assert "2 firing" in said
        assert HOSTILE in said
        assert HOSTILE not in page
        assert "topsecret" not in page
        assert "Queue 'mail' has 1 pending job, more than 0." in said
        assert "there is no receiver nobody" in said
        form = {"rule": "long", "subject": "mail", "for": "7200", "reason": "we know"}
        assert "Nothing is told of long about mail until" in await who.send(
            "/alerts/silence", 303, **form
        )
        assert "by test admin: we know" in words(await who.sees("/alerts", "we know"))
        assert "choose one of the times" in words(
            await who.send("/alerts/silence", 422, rule="long", **{"for": "1"})
        )
        await who.send("/alerts/unsilence", 303, rule="long", subject="mail")
        await who.send("/alerts/test", 303, receiver="ops")
        done = {(what, to) for _, what, to in await audited(site)}
        assert {("alert.silence", "long"), ("alert.unsilence", "long")} <= done
        assert ("alert.test", "ops") in done


async def test_who_may(make_site: MakeSite) -> None:
    site = await make_site()
    await site.app.put_alert_rule("long", "queue_length", "ops", above=0)
    async with visitor(site, await a_key(site.app, scope="read")) as who:
        page = await who.get("/alerts")
        assert "long" in page
        assert "/alerts/silence" not in page
        await who.send("/alerts/silence", 403, rule="long", **{"for": "1800"})
    async with visitor(site, await a_key(site.app, scope="admin", queues=["mail"])) as who:
        await who.get("/alerts", 403)
        await who.send("/alerts/test", 403, receiver="ops")


async def test_it_is_live_and_looks_right(make_site: MakeSite, windows: Windows) -> None:
    site = await make_site()
    async with a_receiver() as receiver:
        page = await windows.open(f"{site.base}/alerts")
        await is_live(page)
        await a_scene(site, receiver.url)
        site.app._alert_loop.wake()  # type: ignore[union-attr]
        await page.wait_for_selector("#live-firing article")
        await until(lambda: site.app._alert_loop is not None)
        await check_looks(page)
