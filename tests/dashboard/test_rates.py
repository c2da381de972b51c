"""Rates on the pages of lanes, queues and jobs, and the forms that change them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.model.limits.rate import Rate, RateView
from headrace.monitor.findings.queues import HELD_SECONDS
from tests.dashboard.conftest import MakeSite, Site, Windows, check_axe, is_live
from tests.dashboard.visits import Visitor, audited, visitor, words
from tests.server.conftest import a_key
from tests.support.verbs import a_worker, claim, complete, enqueue

HOSTILE = "<script>alert(1)</script>\u202e\U0001f600/b?x#y"
PLACE: dict[str, Any] = {"queue": "mail", "lane": HOSTILE}
FOR: dict[str, Any] = {"for": "600"}
# Everything that changes rates: a form, and fields that it needs.
FORMS: dict[str, dict[str, Any]] = {
    "/rates/set": {"starts": "10/m", "burst": "3"},
    "/rates/remove": {},
    "/rates/hold": {"for": "600"},
    "/rates/release": {},
}


async def a_slow_lane(site: Site, queue: str = "mail", lane: str = HOSTILE) -> str:
    """A lane with a rate in which one job has started, and one is parked: return that."""
    engine = site.app.engine
    await enqueue(engine, queue=queue, lane=lane, width=5)
    parked = await enqueue(engine, queue=queue, lane=lane, width=5)
    await site.app.set_rate(queue, "1/h", lane=lane)
    worker = await a_worker(engine, f"worker-{queue}")
    [job] = await claim(engine, worker, 5, queues=[queue])
    await complete(engine, job)
    return parked


async def the_rate(site: Site, lane: str = HOSTILE) -> RateView:
    [found] = await site.app.rates(queue="mail", lane=lane)
    return found


async def a_key_page(who: Visitor) -> str:
    found = await who.http.get("/ui/lanes", params={"queue": "mail", "lane": HOSTILE})
    assert found.status_code == 200
    return found.text


async def test_pages_say_how_fast_jobs_start(site: Site) -> None:
    parked = await a_slow_lane(site)
    await site.app.set_rate("mail", "100/s")
    await site.app.hold("mail", duration=600, reason="they <b>asked</b>", by="ada")
    async with visitor(site) as who:
        page = await who.get("/lanes")
        said = words(page)
        assert "<script>alert" not in page
        assert f"{HOSTILE} mail 1 an hour an operator 1 " in said
        assert "the queue itself mail 100 a second, up to 20 at once an operator" in said
        assert "by ada: they <b>asked</b>" in said
        assert "they <b>" not in page
        # What is held comes first.
        assert said.index("the queue itself") < said.index(f"{HOSTILE} mail 1 an hour an operator")
        said = words(await a_key_page(who))
        assert f"Rate of lane {HOSTILE} Rate 1 an hour Set by an operator Waiting 1" in said
        said = await who.words("/queues/mail")
        assert "Its jobs start 100 a second, up to 20 at once . held until" in said
        assert f"{HOSTILE} 0 1 of 5 1 an hour" in said
        page = await who.get(f"/jobs/{parked}")
        assert "It may start at " in words(page)
        assert "#rate" in page


async def test_a_page_without_rates_says_nothing_of_them(site: Site) -> None:
    await enqueue(site.app.engine, queue="mail", lane="x")
    async with visitor(site) as who:
        said = await who.words("/lanes")
        assert "headrace rates list" not in said
        said = await who.words("/lanes?queue=mail&lane=x")
        assert "Rate of lane x Rate \N{EN DASH} Hold \N{EN DASH}" in said
        assert "Set rate" in said


async def test_forms_change_rates_and_holds(make_site: MakeSite) -> None:
    site = await make_site()
    await a_slow_lane(site)
    key = await a_key(site.app, "admin", queues=["mail"])
    async with visitor(site, key) as who:
        said = await who.send("/rates/set", **PLACE, starts=" 10 / m ", burst="3")
        assert "start 10 a minute." in said
        assert (await the_rate(site)).rate == Rate(10, 60, 3)
        said = await who.send("/rates/set", **PLACE, starts="2/s", burst="")
        assert (await the_rate(site)).rate == Rate(2, 1, 1)
        said = await who.send("/rates/hold", **PLACE, **FOR, reason=" they asked ")
        assert "Running jobs go on." in said
        held = await the_rate(site)
        assert (held.held_by, held.held_reason) == ("test admin", "they asked")
        page = words(await a_key_page(who))
        assert "Release" in page
        assert "Change hold" in page
        until = f"{site.app.clock.utcnow() + timedelta(days=1):%Y-%m-%dT%H:%M}"
        typed: dict[str, Any] = {"for": "until", "until": until, "zone": "Asia/Seoul"}
        await who.send("/rates/hold", **PLACE, **typed)
        held = await the_rate(site)
        assert held.held_until is not None
        left = (held.held_until - site.app.clock.utcnow()).total_seconds()
        assert 14 * 3_600 < left < 15 * 3_600 + 60
        assert "may start again" in await who.send("/rates/release", **PLACE)
        assert (await the_rate(site)).held_until is None
        assert "is removed. It has none now." in await who.send("/rates/remove", **PLACE)
        assert await site.app.rates(lane=HOSTILE) == []
        # A queue has no lane.
        await who.send("/rates/set", queue="mail", lane="", starts="5/s")
        assert (await the_rate(site, "")).rate == Rate(5, 1, 1)
    target = f"mail/{HOSTILE}"
    assert [each for each in await audited(site) if each[1].startswith("rate.")] == [
        ("test admin", "rate.set", "mail"),
        *(
            ("test admin", f"rate.{verb}", target)
            for verb in ("remove", "release", "hold", "hold", "set", "set")
        ),
    ]


async def test_forms_are_refused_to_those_who_may_not(make_site: MakeSite) -> None:
    site = await make_site()
    await a_slow_lane(site)
    before = await the_rate(site)
    keys = {
        "read": await a_key(site.app, "read"),
        "write": await a_key(site.app, "write"),
        "of a user": await a_key(site.app, "admin", user="ada"),
        "of another queue": await a_key(site.app, "admin", queues=["scans"]),
    }
    for name, key in keys.items():
        async with visitor(site, key) as who:
            for path, fields in FORMS.items():
                await who.send(path, 403, **PLACE, **fields)
            if name == "of another queue":
                assert HOSTILE not in words(await who.get("/lanes"))
                refused = await who.http.get("/ui/lanes", params={"queue": "mail"})
                assert refused.status_code == 403
            elif name != "of a user":
                page = await a_key_page(who)
                assert "Rate of lane" in page
                assert "/rates/" not in page
                assert "/rates/" not in await who.get("/queues/mail")
    assert await the_rate(site) == before
    assert not [each for each in await audited(site) if each[1].startswith("rate.")]


async def test_what_is_mistyped_is_told(site: Site) -> None:
    async with visitor(site) as who:
        for path, fields, told in (
            ("/rates/set", {"starts": "ten"}, "cannot be read; write"),
            ("/rates/set", {"starts": ""}, "cannot be read; write"),
            ("/rates/set", {"starts": "1/s", "burst": "many"}, "burst must be a whole number"),
            ("/rates/hold", {"for": "7"}, "choose one of the times"),
            ("/rates/hold", {"for": "until"}, "choose the time at which the hold ends"),
            ("/rates/hold", {"for": "until", "until": "2020-01-01"}, "choose a time to come"),
        ):
            assert told in words(await who.send(path, 422, **PLACE, **fields))
        assert await site.app.rates() == []


async def test_in_a_browser(site: Site, windows: Windows) -> None:
    """By keyboard, on a phone, and the page follows what others do."""
    await a_slow_lane(site, lane="host:example.com")
    page = await windows.open(
        f"{site.base}/lanes?queue=mail&lane=host:example.com",
        width=390,
        height=844,
    )
    await is_live(page)
    await page.locator("#live-rates summary >> text=Change rate").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("dialog[open]")
    await page.fill("dialog input[name=starts]", "10/m")
    await check_axe(page)
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said >> text=start 10 a minute")
    assert (await the_rate(site, "host:example.com")).rate == Rate(10, 60, 1)
    await site.app.hold("mail", lane="host:example.com", duration=600, reason="they asked")
    await page.wait_for_selector("#live-rates >> text=they asked")
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


async def test_a_held_queue_is_released_from_the_front_page(site: Site) -> None:
    await enqueue(site.app.engine, queue="mail")
    await a_worker(site.app.engine)
    await site.app.hold("mail", duration=3_600, reason="they asked")
    site.app.clock.advance(HELD_SECONDS + 1)
    async with visitor(site) as who:
        page = await who.sees("/", "is held until")
        assert "/rates/release" in page
        await who.send("/rates/release", queue="mail", lane="")
        assert await site.app.rates() == []
