"""Intake: dispatchers, messages that made no job, destinations."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

import headrace
from headrace.api_types.responses import DispatcherView
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.monitor.snapshot import DISPATCHER
from headrace.server.dashboard.actions import intake as actions
from headrace.server.dashboard.pages.intake import dead_letters
from headrace.server.dashboard.pages.intake.intake import dispatcher_state
from tests.dashboard.conftest import (
    MakeSite,
    Site,
    Windows,
    has_keys,
    is_live,
)
from tests.dashboard.test_session import client, signed_in
from tests.dashboard.test_workflows import form_token
from tests.server.conftest import a_key
from tests.support.processes import until

ODD = "kafka:foo/bar.baz?x#y:<script>:0"
GOOD = b'{"handler_name":"add","params":{"a":1,"b":2}}'
BEFORE = {"before": "2100-01-01T00:00:00+00:00"}


async def put(
    app: headrace.App,
    keys: Sequence[str],
    body: bytes = GOOD,
    *,
    topic: str = "orders",
    reason: str = 'unknown task "x"',
) -> None:
    """Messages that were set aside."""
    rejected = [
        RejectedMessage(
            Message(
                body=body, topic=topic, key=key, partition=0, offset=number, sent_at=1_700_000_000.0
            ),
            "UnknownTask",
            reason,
        )
        for number, key in enumerate(keys)
    ]
    await DeadLetters(app).keep("kafka", rejected)


async def left(app: headrace.App) -> list[str]:
    return [each.id for each in (await app.dead_letters(limit=200)).dead_letters]


async def group_id(browser: httpx.AsyncClient, site: Site, letter_id: str) -> str:
    letter = await DeadLetters(site.app).get(letter_id)
    found = dead_letters.group_of(letter)
    assert f'id="group-{found}"' in (await browser.get("/ui/intake")).text
    return found


async def test_dispatchers_are_shown_with_their_state(site: Site) -> None:
    app = site.app
    await app.open()
    report = {"type": "queue", "adapter": "kafka", "healthy": True, "lag": 40_000, "stored": 7}
    await app.engine.record_put(DISPATCHER, "<b>k</b>", msgspec.json.encode(report))
    cron = {"type": "cron", "adapter": "cron", "healthy": True, "schedules": 4}
    await app.engine.record_put(DISPATCHER, "c1", msgspec.json.encode(cron))
    async with client(site) as browser:

        async def reported() -> str | None:
            page = (await browser.get("/ui/intake")).text
            return page if "4 schedules" in page else None

        page = await until(reported) or ""
        assert "&lt;b&gt;k&lt;/b&gt;" in page
        assert "40,000 messages" in page
        assert 'data-status="behind"' in page
        only = (await browser.get("/ui/intake", params={"name": "c1"})).text
        assert "40,000" not in only


@pytest.mark.parametrize(
    ("report", "state"),
    [
        ({"silent": True, "healthy": True}, "silent"),
        ({"healthy": False}, "not well"),
        ({"healthy": True, "lag": 1_000}, "behind"),
        ({"healthy": True, "late_seconds": 60.0}, "behind"),
        ({"healthy": True, "lag": 0}, "well"),
    ],
)
def test_the_state_of_a_dispatcher_is_a_word(report: dict[str, Any], state: str) -> None:
    seen: dict[str, Any] = {"silent": False, "seen_at": datetime.now(UTC)}
    view = DispatcherView(name="d", type="queue", adapter="nats", **seen | report)
    assert dispatcher_state(view)[1] == state


async def test_letters_are_grouped_by_cause(site: Site) -> None:
    for number in range(12):
        await put(site.app, [f"kafka:{number:03}"], reason=f'unknown task "x{number}"')
    await put(site.app, ["sqs:1"], topic=ODD, reason="the message is not JSON")
    async with client(site) as browser:
        page = (await browser.get("/ui/intake")).text
        assert page.count('id="group-') == 2
        assert "13 messages" in page
        group = await group_id(browser, site, "kafka:003")
        only = (await browser.get("/ui/intake", params={"group": group})).text
        assert only.count('id="letter-') == 12
        assert "sqs:1" not in only
        # The line for the shell is safe to paste.
        assert "headrace dead-letters replay --topic &#39;kafka:foo/bar.baz?x#y" in page


async def test_groups_and_pages_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(site.app, [f"kafka:{number:03}" for number in range(30)])
    await put(site.app, ["zz"], topic="last")
    monkeypatch.setattr(dead_letters, "COUNTED", 10)
    monkeypatch.setattr(dead_letters, "LOOK", 10)
    async with client(site) as browser:
        page = (await browser.get("/ui/intake")).text
        assert "only the first 10 by id are counted" in page
        group = dead_letters.group_of(await DeadLetters(site.app).get("zz"))
        page = (await browser.get("/ui/intake", params={"group": group})).text
        assert "Look further" in page
        assert 'id="letter-' not in page
        end = (await browser.get("/ui/intake", params={"group": group, "cursor": "kafka:029"})).text
        assert end.count('id="letter-') == 1


async def test_a_message_is_shown_as_text_without_what_is_hidden(site: Site) -> None:
    whole = b'{"task":"x","args":{"password":"hunter22","html":"<script>alert(1)</script>"}}'
    await put(site.app, [ODD], whole)
    await put(site.app, ["half"], b'{"task":"x","args":{"password": "hunter\\"22", "n": 1')
    await put(site.app, ["deeper"], b'{"secret": {"a": ["hunter22"')
    async with client(site) as browser:
        listed = (await browser.get("/ui/intake")).text
        assert "kafka%3Afoo%2Fbar.baz%3Fx%23y%3A%3Cscript%3E%3A0" in listed
        shown = []
        for letter_id in (ODD, "half", "deeper"):
            path = quote(letter_id, safe="")
            page = await browser.get(f"/ui/intake/letters/{path}")
            assert page.status_code == 200
            shown.append(page.text)
            answer = await browser.get(f"/dead-letters/{path}")
            shown.append(base64.b64decode(answer.json()["raw"]).decode())
        assert "&lt;script&gt;alert(1)" in shown[0]
        assert "<script>alert" not in shown[0]
        for text in shown:
            assert "[redacted]" in text
            assert "hunter" not in text
        assert "&#34;n&#34;: 1" in shown[2]
        assert (await browser.get("/ui/intake/letters/none")).status_code == 404


async def test_letters_are_replayed_and_removed(site: Site) -> None:
    await put(site.app, ["one", "two", ODD])
    async with client(site) as browser:
        form = {"token": form_token((await browser.get("/ui/intake")).text), "back": "/intake"}
        done = await browser.post("/ui/intake/letters/one/replay", data=form)
        job_id = done.headers["location"].removeprefix("/ui/jobs/")
        assert (await site.app.get(job_id)).args == {"a": 1, "b": 2}
        await browser.post("/ui/intake/letters/two/remove", data=form)
        odd = "kafka%3Afoo%2Fbar.baz%3Fx%23y%3A%3Cscript%3E%3A0"
        await browser.post(f"/ui/intake/letters/{odd}/remove", data=form)
        assert await left(site.app) == []
        entries = (await browser.get("/audit", params={"action": "dead-letter"})).json()["entries"]
        assert [(each["action"], each["target"]) for each in entries] == [
            ("dead-letter.remove", ODD),
            ("dead-letter.remove", "two"),
            ("dead-letter.replay", "one"),
        ]


async def test_a_group_is_replayed_in_steps(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(site.app, [f"k{number:02}" for number in range(12)])
    await put(site.app, ["k05b"], b'{"handler_name":"none"}')
    await put(site.app, ["other"], topic="other")
    monkeypatch.setattr(actions, "MOST_AT_ONCE", 10)
    async with client(site) as browser:
        group = await group_id(browser, site, "k00")
        form = {"token": form_token((await browser.get("/ui/intake")).text), **BEFORE}
        done = await browser.post(f"/ui/intake/groups/{group}/replay", data=form)
        where = done.headers["location"]
        assert where == f"/ui/intake?group={group}&cursor=k08"
        said = (await browser.get(where)).text
        assert "9 messages made a job. 1 made none: Unknown task" in said
        assert "do it again to go on from here" in said
        assert 'name="cursor" value="k08"' in said
        form["cursor"] = "k08"
        done = await browser.post(f"/ui/intake/groups/{group}/replay", data=form)
        assert "3 messages made a job." in (await browser.get(done.headers["location"])).text
        assert await left(site.app) == ["k05b", "other"]
        entries = (await browser.get("/audit")).json()["entries"]
        assert [(each["action"], each["target"]) for each in entries] == [
            ("dead-letters.replay", "3 messages"),
            ("dead-letters.replay", "9 messages"),
        ]


async def test_what_came_after_the_page_is_left_alone(site: Site) -> None:
    await put(site.app, ["k1"])
    first = (await DeadLetters(site.app).get("k1")).set_aside_at
    await put(site.app, ["k2"])
    assert (await DeadLetters(site.app).get("k2")).set_aside_at > first
    async with client(site) as browser:
        group = await group_id(browser, site, "k1")
        form = {"token": form_token((await browser.get("/ui/intake")).text)}
        path = f"/ui/intake/groups/{group}"
        assert (await browser.post(f"{path}/remove", data=form)).status_code == 422
        form["before"] = first.isoformat()
        assert (await browser.post(f"{path}/burn", data=form)).status_code == 422
        await browser.post(f"{path}/remove", data=form)
        assert await left(site.app) == ["k2"]


async def test_destinations_are_switched_and_tested(site: Site) -> None:
    await site.app.put_destination("crm", "webhook", {"url": "https://crm.example.com/hooks"})
    async with client(site) as browser:
        page = (await browser.get("/ui/intake")).text
        assert "https://crm.example.com/hooks" in page
        assert "whsec_" not in page
        form = {"token": form_token(page), "back": "/intake"}
        await browser.post("/ui/intake/destinations/crm/disable", data=form)
        assert "disabled by hand" in (await browser.get("/ui/intake")).text
        await browser.post("/ui/intake/destinations/crm/enable", data=form)
        assert (await site.app.destination("crm")).enabled
        done = await browser.post("/ui/intake/destinations/crm/test", data=form)
        job = await site.app.get(done.headers["location"].removeprefix("/ui/jobs/"))
        assert job.task == "headrace.deliver"
        await site.app.engine.cancel([job.id], "no network here")
        entries = (await browser.get("/audit")).json()["entries"]
        assert [each["action"] for each in entries] == [
            "destination.test",
            "destination.enable",
            "destination.disable",
        ]
        lost = await browser.post("/ui/intake/destinations/none/test", data=form)
        assert lost.status_code == 404


async def test_scopes_are_those_of_the_api(make_site: MakeSite) -> None:
    site = await make_site()
    await put(site.app, ["one"])
    await site.app.put_destination("crm", "webhook", {"url": "https://crm.example.com/hooks"})
    async with signed_in(site, await a_key(site.app, "write")) as browser:
        for path in ("/intake", "/intake/letters/one"):
            page = (await browser.get(f"/ui{path}")).text
            assert "<summary class=" not in page
            assert 'action="/ui/intake' not in page
        trial = form_token((await browser.get("/ui/trial")).text)
        group = dead_letters.group_of(await DeadLetters(site.app).get("one"))
        for path in (
            "letters/one/replay",
            "letters/one/remove",
            f"groups/{group}/remove",
            "destinations/crm/test",
        ):
            answer = await browser.post(f"/ui/intake/{path}", data={"token": trial, **BEFORE})
            assert answer.status_code == 403, path
    assert await left(site.app) == ["one"]
    async with signed_in(site, await a_key(site.app, "admin", queues=["default"])) as browser:
        for path in ("/intake", "/intake/letters/one"):
            refused = await browser.get(f"/ui{path}")
            assert refused.status_code == 403
            assert "crm" not in refused.text
        trial = form_token((await browser.get("/ui/trial")).text)
        path = "/ui/intake/letters/one/remove"
        assert (await browser.post(path, data={"token": trial})).status_code == 403
    assert await left(site.app) == ["one"]


async def test_a_message_is_replayed_by_keyboard(site: Site, windows: Windows) -> None:
    await put(site.app, ["kafka:orders:3:1042"])
    page = await windows.open(f"{site.base}/intake")
    windows.expected = "404"  # the page of a job may not be there
    await is_live(page)
    await page.focus("#letters a")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/intake/letters/*")
    await has_keys(page)
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await page.focus("dialog button.primary")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/jobs/*")
    assert await left(site.app) == []
