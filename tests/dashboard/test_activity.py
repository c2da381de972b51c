"""Activity: changes in words, filters in the address, and who may look."""

from __future__ import annotations

import re

import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.server.auth.audit import AuditLog
from headrace.server.auth.caller import Caller
from headrace.server.dashboard.pages.activity import WORDS
from tests.dashboard.conftest import (
    MakeSite,
    Site,
    Windows,
    is_live,
)
from tests.dashboard.test_session import client, signed_in
from tests.server.conftest import a_key
from tests.server.test_audit import CHANGES

HOSTILE = "<script>alert(1)</script>\u202e🦊"


async def written(app: headrace.App, *changes: tuple[str, str], who: str = "ada") -> None:
    """Changes that somebody made."""
    log = AuditLog(app)
    caller = Caller(name=who, scope="admin", key_id=f"{who:0<16}")
    for action, target in changes:
        await log.changed(caller, action, target)


def texts(html: str) -> list[str]:
    """What was done, in words."""
    cells = re.findall(r'<td data-label="What">(.*?)</td>', html)
    return [re.sub(r"<code.*?</code>|<[^>]+>", "", cell).strip() for cell in cells]


def test_every_change_has_words() -> None:
    assert set(CHANGES.values()) <= set(WORDS)
    assert all("{}" in words for words in WORDS.values())


async def test_changes_are_told_in_words_with_links(site: Site) -> None:
    await written(
        site.app,
        ("queue.pause", "mail"),
        ("job.cancel", "01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11"),
        ("workflow.retry", "01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b12"),
        ("schedule.remove", "nightly"),
        ("alert.silence", "long"),
        ("odd.thing", HOSTILE),
    )
    async with client(site) as browser:
        await browser.post("/jobs", json={"task": "add", "args": {"a": 1, "b": 1}})
        page = (await browser.get("/ui/activity")).text
        assert [each for each in texts(page) if "enqueued" not in each] == [
            "odd thing &lt;script&gt;alert(1)&lt;/script&gt;\u202e🦊",
            "silenced alerts of rule long",
            "removed schedule nightly",
            "began run 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b12 again",
            "cancelled job 01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11",
            "paused queue mail",
        ]
        for link in (
            "/ui/queues/mail",
            "/ui/jobs/01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b11",
            "/ui/runs/01920a5e-7c3b-7d1a-9f00-3a5d1f0c2b12",
        ):
            assert f'href="{link}"' in page
        assert '<a href="/ui/alerts">long</a>' in page
        assert "/ui/schedules/nightly" not in page
        assert "queue.pause" in page


async def test_filters_are_in_the_address(site: Site) -> None:
    await written(site.app, ("queue.pause", "mail"), ("queue.resume", "mail"))
    await written(site.app, ("queue.pause", "scans"), who="bob")

    async with client(site) as browser:

        async def found(**query: str) -> list[str]:
            answer = await browser.get("/ui/activity", params=query)
            assert answer.status_code == 200, answer.text
            return texts(answer.text)

        assert len(await found(action="queue")) == 3
        assert await found(action="queue.pause", who="ada") == ["paused queue mail"]
        assert await found(target="scans", since="", until="") == ["paused queue scans"]
        assert await found(until="2020-01-01T00:00:00Z") == []
        assert len(await found(since="2020-01-01T00:00:00Z")) == 3
        assert (await browser.get("/ui/activity?since=soon")).status_code == 422
        assert (await browser.get("/ui/activity?whom=ada")).status_code == 422
        assert (await browser.get("/ui/activity?cursor=x")).status_code == 422


async def test_own_changes_are_a_tab(make_site: MakeSite) -> None:
    site = await make_site()
    await written(site.app, ("queue.pause", "theirs"))
    key, secret = await create_key(site.app, name="eve", scope="admin")
    async with signed_in(site, secret) as browser:
        headers = {"Authorization": f"Bearer {secret}"}
        await browser.post("/queues/own/pause", headers=headers)
        page = (await browser.get("/ui/activity")).text
        assert texts(page) == ["paused queue own", "paused queue theirs"]
        assert f'href="/ui/activity?who={key.id}">Mine</a>' in page
        own = (await browser.get("/ui/activity", params={"who": key.id})).text
        assert texts(own) == ["paused queue own"]
        assert "who: <b>you</b>" in own


async def test_a_long_log_is_read_in_pages(site: Site) -> None:
    await written(site.app, *(("queue.pause", f"q{number}") for number in range(60)))
    async with client(site) as browser:
        page = (await browser.get("/ui/activity")).text
        assert len(texts(page)) == 50
        more = re.search(r'data-next="([^"]+)"', page)
        assert more is not None
        rest = texts((await browser.get(more[1].replace("&amp;", "&"))).text)
        assert rest == [f"paused queue q{number}" for number in reversed(range(10))]


async def test_details_are_short_and_hide_what_is_hidden(site: Site) -> None:
    log = AuditLog(site.app)
    caller = Caller(name="ada", scope="admin")
    await log.changed(caller, "queue.pause", "mail", password="hunter22", reason="x" * 5_000)
    async with client(site) as browser:
        page = (await browser.get("/ui/activity")).text
        assert "[redacted]" in page
        assert "hunter22" not in page
        assert "x" * 100 in page
        assert "x" * 200 not in page


@pytest.mark.parametrize(("scope", "queues"), [("read", ()), ("write", ()), ("admin", ("mail",))])
async def test_it_is_for_those_who_may_read_the_audit_log(
    make_site: MakeSite, scope: str, queues: tuple[str, ...]
) -> None:
    site = await make_site()
    await written(site.app, ("queue.pause", "theirs"))
    async with signed_in(site, await a_key(site.app, scope, queues=queues)) as browser:
        answer = await browser.get("/ui/activity")
        assert answer.status_code == 403
        assert "theirs" not in answer.text
        if scope != "admin":
            assert (await browser.get("/ui/stream?view=/activity")).status_code == 403
            assert "Activity</a>" not in (await browser.get("/ui/workers")).text


async def test_the_page_is_live(site: Site, windows: Windows) -> None:
    await written(site.app, ("queue.pause", "mail"), ("dead-letter.replay", HOSTILE))
    page = await windows.open(f"{site.base}/activity")
    await is_live(page)
    await written(site.app, ("queue.resume", "mail"))
    await page.wait_for_selector("#live-activity >> text=resumed queue")


async def test_it_is_filtered_by_keyboard(site: Site, windows: Windows) -> None:
    await written(site.app, ("queue.pause", "mail"))
    await written(site.app, ("queue.pause", "scans"), who="bob")
    page = await windows.open(f"{site.base}/activity")
    await is_live(page)
    await page.keyboard.press("/")
    await page.keyboard.type("bob")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/activity?who=bob*")
    assert "mail" not in await page.inner_text("#live-activity")
