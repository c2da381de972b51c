"""The address of a page is all that it shows, and each key sees the forms that it may send."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
import pytest

from headrace.admin.keys import SCOPES
from headrace.server.dashboard.page import all_pages
from tests.dashboard.conftest import Windows, is_live
from tests.dashboard.pictures import settled, sign_in
from tests.dashboard.test_keyboard import action_of
from tests.dashboard.test_session import client, signed_in
from tests.dashboard.test_stream import stream
from tests.dashboard.tour import Tour
from tests.server.conftest import a_key

# A value for each filter, so that something is left where all of a page are set.
FILTERS = {
    "/jobs": {
        "status": "failed", "queue": "mail", "task": "send_receipt", "worker": "worker-1",
        "error_type": "ConnectionError", "source": "api", "since": "2026-03-10T00:00:00+00:00",
        "until": "2026-03-11T00:00:00+00:00", "finished_since": "2026-03-10T00:00:00+00:00",
        "finished_until": "2026-03-11T00:00:00+00:00", "search": "smtp", "lane": "customer:7",
        "key": "a key", "group": "a group", "parent": "01990000-0000-7000-8000-000000000000",
        "fingerprint": "0123456789abcdef",
    },
    "/errors": {
        "task": "send_receipt", "queue": "mail", "error_type": "ConnectionError",
        "within": "hour", "since": "2026-03-10T00:00:00+00:00",
        "until": "2026-03-11T00:00:00+00:00",
    },
    "/activity": {
        "who": "ada", "action": "queue.pause", "target": "reports",
        "since": "2026-03-10T00:00:00+00:00", "until": "2026-03-11T00:00:00+00:00",
    },
    "/lanes": {"queue": "invoices", "lane": "customer:7", "blocked": "yes"},
    "/intake": {"name": "orders-1", "group": "0123456789abcdef"},
    "/keys": {"revoked": "shown"},
    "/workers": {"queue": "mail"},
}  # fmt: skip
# Where a page is in a list, and pages that are about the one thing that is named.
NO_FILTERS = {"cursor", "action", "name", "step", "version", "expression", "tz"}
LISTS = [each for each in all_pages() if "{" not in each.path and each.path in FILTERS]


def addressed(path: str, filters: dict[str, str]) -> str:
    """A page with filters."""
    given = "&".join(f"{name}={quote(value, safe='')}" for name, value in filters.items())
    return f"{path}?{given}"


def query_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(html.unescape(address)).query))


def shown(page: str) -> str:
    """What a page shows, without what belongs to its reader."""
    main = page.partition("<main")[2].partition("</main>")[0]
    return re.sub(r'name="token" value="[^"]*"', "", main)


def links(page: str) -> Iterator[str]:
    yield from re.findall(r'href="([^"]+)"', page.partition("<main")[2])


def test_every_filter_has_a_value_here() -> None:
    known = {each.path: each.query - NO_FILTERS for each in all_pages() if "{" not in each.path}
    about_one = {"/errors/group", "/jobs/bulk", "/trial"}
    wanted = {path: names for path, names in known.items() if names and path not in about_one}
    found = {path: set(FILTERS.get(path, ())) - NO_FILTERS for path in wanted}
    assert found == wanted


@pytest.mark.parametrize("page", LISTS, ids=lambda page: page.path)
async def test_filters_are_in_the_address_and_survive_everything(tour: Tour, page: object) -> None:
    path = page.path  # type: ignore[attr-defined]
    filters = FILTERS[path]
    address = addressed(path, filters)
    async with signed_in(tour.site, tour.shop.key) as one, client(tour.site) as other:
        answer = await one.get(f"/ui{address}")
        assert answer.status_code == 200, answer.text
        text = answer.text
        # Somebody else who is given the address sees the same.
        await other.post("/ui/session", data={"key": tour.shop.key})
        assert shown((await other.get(f"/ui{address}")).text) == shown(text)
        # Each one can be seen: typed in a field, on a chip, or as the tab that is chosen.
        words = html.unescape(text)
        for name, value in filters.items():
            typed = f'name="{name}" value="{value}"' in words or f'value="{value}"' in words
            chosen = any(
                query_of(link).get(name) == value
                for link in re.findall(r'href="([^"]+)" aria-current="true"', text)
            )
            removed = any(
                urlsplit(link).path == f"/ui{path}"
                and query_of(link) == {n: v for n, v in filters.items() if n != name}
                for link in links(text)
            )
            assert typed or chosen or removed, f"{name} is not shown"
        # Forms come back here; more of the list keeps them.
        for back in re.findall(r'name="back" value="([^"]*)"', text.partition("<main")[2]):
            assert query_of(back) == filters, back
        for link in re.findall(r'href="([^"]+)" data-more', text):
            assert query_of(link).items() >= filters.items()


async def test_back_and_forward(tour: Tour, windows: Windows) -> None:
    page = await (await windows.context()).new_page()
    await sign_in(page, tour.site, tour.shop)
    base = f"{tour.site.base}/jobs"
    await page.goto(base)
    await settled(page)
    await page.fill("#queue", "mail")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/jobs?*queue=mail*")
    await page.click("[aria-label=Status] >> text=Failed")
    await page.wait_for_url("**status=failed*")
    await is_live(page)
    both = page.url
    count = await page.inner_text("#count")
    assert "mail" in await page.inner_text("[aria-label=Filters]")
    await page.go_back()
    await page.wait_for_url(lambda url: "status" not in url)
    assert await page.input_value("#queue") == "mail"
    await page.go_back()
    await page.wait_for_url(base)
    assert await page.input_value("#queue") == ""
    await page.go_forward()
    await page.go_forward()
    await page.wait_for_url(both)
    assert await page.inner_text("#count") == count
    # An action comes back to just this.
    await is_live(page)
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said")
    assert page.url == both
    await page.close()


async def forms_of(browser: httpx.AsyncClient, address: str) -> Iterator[str]:
    """Return the forms of a page and of its stream."""
    answer = await browser.get(f"/ui{address}")
    if answer.status_code in (403, 404):
        return iter(())
    assert answer.status_code == 200, answer.text
    text = answer.text.partition("<main")[2]
    if 'id="live-' in text and "data-view=" in answer.text:
        async with stream(browser, address) as live:
            text += "".join((await live.parts()).values())
    forms = re.findall(r'<form[^>]*method="post"[^>]*>', text)
    found = [re.search(r'action="([^"]+)"', html.unescape(form)) for form in forms]
    return iter({each[1] for each in found if each is not None})


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_key_sees_the_forms_that_it_may_send(tour: Tour, scope: str) -> None:
    """On every page and in every stream. That the others are refused, `test_session` shows."""
    seen: set[str] = set()
    async with signed_in(tour.site, await a_key(tour.shop.app, scope)) as browser:
        for address in (each for some in tour.addresses.values() for each in some):
            for form in await forms_of(browser, address):
                action = action_of(form)
                assert SCOPES.index(action.scope) <= SCOPES.index(scope), (address, form)
                seen.add(action.path)
    assert bool(seen) == (scope != "read")
