"""Sessions: sign-in with a key, forms with a token, and what ends a session."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest

from headrace.admin.keys import create_key, revoke_key
from headrace.server.dashboard.action import ACTIONS, all_actions
from headrace.server.dashboard.page import all_files, all_pages
from headrace.server.dashboard.session import store
from tests.dashboard.conftest import MakeSite, Site, Windows
from tests.dashboard.trial import TRIAL
from tests.server.conftest import a_key


def client(site: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}, timeout=30)


@asynccontextmanager
async def signed_in(site: Site, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client(site) as browser:
        answer = await browser.post("/ui/session", data={"key": key, "back": "/trial"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/trial")
        yield browser


async def token(browser: httpx.AsyncClient) -> str:
    page = await browser.get("/ui/trial")
    assert page.status_code == 200
    found = re.search(r'name="token" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    return found[1]


async def test_without_a_session_every_page_leads_to_sign_in(make_site: MakeSite) -> None:
    site = await make_site()
    await a_key(site.app)
    async with client(site) as browser:
        for each in (*(page.path for page in all_pages()), *(file.path for file in all_files())):
            path = "/ui" + re.sub(r"\{[^}]*\}", "x", each)
            answer = await browser.get(path)
            assert answer.status_code == 303, path
            assert answer.headers["location"].startswith("/ui/session?back="), path
        for action in all_actions():
            path = "/ui" + re.sub(r"\{[^}]*\}", "x", action.path)
            assert (await browser.post(path, data={"x": ""})).status_code == 403, path
        assert (await browser.get("/ui/stream?view=/trial")).status_code == 401
        shown = await browser.get("/ui/session")
        assert shown.status_code == 200
        assert "API key" in shown.text


async def test_a_cookie_is_for_the_dashboard_alone(make_site: MakeSite) -> None:
    site = await make_site()
    key = await a_key(site.app)
    async with client(site) as browser:
        answer = await browser.post("/ui/session", data={"key": key})
        cookie = answer.headers["set-cookie"]
        assert re.fullmatch(r"headrace=[\w-]{43}; HttpOnly; Path=/ui; SameSite=strict", cookie)
        assert key not in answer.text + str(answer.headers)
        session_id = browser.cookies["headrace"]
        # The JSON API wants the key itself.
        for path in ("/jobs", "/keys"):
            given = {"cookie": f"headrace={session_id}"}
            assert (await browser.get(path, headers=given)).status_code == 401
        records = await site.app.engine.record_list(store.KIND)
        assert len(records) == 1
        assert session_id not in records[0].key + records[0].body.decode()


@pytest.mark.parametrize(
    ("root", "name", "path"),
    [("", "__Host-headrace", "/"), ("/a/b", "__Secure-headrace", "/a/b/ui")],
)
async def test_https_has_cookies_that_only_https_can_set(
    make_site: MakeSite, root: str, name: str, path: str
) -> None:
    site = await make_site(root_path=root)
    key = await a_key(site.app)
    async with client(site) as browser:
        secure = {"Origin": site.url.replace("http:", "https:")}
        answer = await browser.post(f"{root}/ui/session", data={"key": key}, headers=secure)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{name}=")
        assert f"; Path={path};" in cookie
        assert "; Secure" in cookie
        there = {"cookie": cookie.partition(";")[0]}
        assert (await browser.get(f"{root}/ui/workers", headers=there)).status_code == 200


async def test_wrong_keys_are_refused_and_counted(make_site: MakeSite) -> None:
    site = await make_site()
    good = await a_key(site.app)
    async with client(site) as browser:
        for _ in range(10):
            answer = await browser.post("/ui/session", data={"key": "hr_wrong"})
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers
        answer = await browser.post("/ui/session", data={"key": good})
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "60"


async def test_forms_need_this_origin_and_the_token_of_the_session(make_site: MakeSite) -> None:
    site = await make_site()
    key = await a_key(site.app)
    async with signed_in(site, key) as one, signed_in(site, key) as other:
        right, foreign = await token(one), await token(other)
        assert right != foreign

        async def status(headers: dict[str, str], **form: str) -> int:
            form["x"] = ""
            return (await one.post("/ui/trial/act", data=form, headers=headers)).status_code

        assert await status({}) == 403
        assert await status({}, token="") == 403
        assert await status({}, token=foreign) == 403
        evil = {"Origin": "https://evil.example"}
        assert await status(evil, token=right) == 403
        assert await status({**evil, "Sec-Fetch-Site": "cross-site"}, token=right) == 403
        assert await status({"Origin": "null"}, token=right) == 403
        assert TRIAL.done == []
        assert await status({}, token=right, back="/trial?status=x") == 303
        assert await status({**evil, "Sec-Fetch-Site": "same-origin"}, token=right) == 303
        assert len(TRIAL.done) == 2
        evil_sign_in = await one.post("/ui/session", data={"key": key}, headers=evil)
        assert evil_sign_in.status_code == 403


async def test_what_was_done_is_said_once_and_audited(make_site: MakeSite) -> None:
    site = await make_site()
    async with signed_in(site, await a_key(site.app, "write")) as browser:
        form = {"token": await token(browser), "back": "/trial?status=x"}
        answer = await browser.post("/ui/trial/act", data=form)
        assert answer.headers["location"] == "/ui/trial?status=x"
        assert "It is done &lt;b&gt;." in (await browser.get("/ui/trial")).text
        assert "It is done" not in (await browser.get("/ui/trial")).text
        for elsewhere in ("//evil.example/", "https://evil.example", "/\\evil.example", "x\n"):
            answer = await browser.post("/ui/trial/act", data={**form, "back": elsewhere})
            assert answer.headers["location"] == "/ui/"
    admin = {"Authorization": f"Bearer {await a_key(site.app)}"}
    async with client(site) as reader:
        entries = (await reader.get("/audit", headers=admin)).json()["entries"]
    assert {each["action"] for each in entries} >= {"trial.act"}
    assert {each["who"] for each in entries if each["action"] == "trial.act"} == {"test write"}


async def test_a_reader_sees_no_form_and_can_send_none(make_site: MakeSite) -> None:
    site = await make_site()
    async with signed_in(site, await a_key(site.app, "read")) as browser:
        page = (await browser.get("/ui/trial")).text
        assert "/trial/act" not in page
        given = {"token": await token(browser)}
        for action in all_actions():
            path = "/ui" + re.sub(r"\{[^}]*\}", "x", action.path)
            assert (await browser.post(path, data=given)).status_code == 403, path
        for each in all_pages():
            if each.scope != "read":
                path = "/ui" + re.sub(r"\{[^}]*\}", "x", each.path)
                assert (await browser.get(path)).status_code == 403
    assert TRIAL.done == []
    assert all(each.scope in {"write", "admin"} for each in ACTIONS.values())


async def test_after_sign_out_nothing_works_any_more(make_site: MakeSite) -> None:
    site = await make_site()
    async with signed_in(site, await a_key(site.app)) as browser:
        right, cookie = await token(browser), browser.cookies["headrace"]
        assert (await browser.post("/ui/session/end", data={"token": "x"})).status_code == 403
        assert (await browser.get("/ui/trial")).status_code == 200
        out = await browser.post("/ui/session/end", data={"token": right})
        assert out.headers["location"] == "/ui/session"
        assert "headrace" not in browser.cookies
        old = {"cookie": f"headrace={cookie}"}
        assert (await browser.get("/ui/trial", headers=old)).status_code == 303
        replayed = await browser.post("/ui/trial/act", data={"token": right}, headers=old)
        assert replayed.status_code == 403
    assert TRIAL.done == []
    assert await site.app.engine.record_list(store.KIND) == []


async def test_a_session_ends_by_itself(make_site: MakeSite) -> None:
    site = await make_site()
    key = await a_key(site.app)
    async with signed_in(site, key) as idle:
        site.app.clock.advance(timedelta(minutes=61).total_seconds())
        assert (await idle.get("/ui/trial")).status_code == 303
    async with signed_in(site, key) as busy:
        # The one that has ended was deleted by this sign-in.
        assert len(await site.app.engine.record_list(store.KIND)) == 1
        for _ in range(14):
            assert (await busy.get("/ui/trial")).status_code == 200
            site.app.clock.advance(timedelta(minutes=50).total_seconds())
        answer = await busy.get("/ui/trial")
        assert answer.status_code == 200
        site.app.clock.advance(timedelta(minutes=30).total_seconds())
        assert (await busy.get("/ui/trial")).status_code == 303


async def test_a_revoked_key_ends_its_session(make_site: MakeSite) -> None:
    site = await make_site()
    await a_key(site.app)
    key, secret = await create_key(site.app, name="gone", scope="admin")
    async with signed_in(site, secret) as browser:
        assert (await browser.get("/ui/trial")).status_code == 200
        await revoke_key(site.app, key.id)
        async with asyncio.timeout(60):
            while (await browser.get("/ui/trial")).status_code == 200:
                pass


async def test_without_keys_it_is_for_this_machine_alone(site: Site) -> None:
    async with client(site) as browser:
        assert (await browser.get("/ui/trial")).status_code == 200
        for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.1"}):
            assert (await browser.get("/ui/trial", headers=headers)).status_code == 403
            assert (await browser.get("/ui/stream?view=/trial", headers=headers)).status_code == 403
        assert (await browser.post("/ui/trial/act", data={"x": ""})).status_code == 403
        form = {"token": await token(browser)}
        assert (await browser.post("/ui/trial/act", data=form)).status_code == 303


async def test_a_key_is_in_no_log_and_in_no_address(
    make_site: MakeSite, windows: Windows, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site = await make_site()
    key = await a_key(site.app)
    page = await windows.open(f"{site.base}/trial?status=x")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    await page.fill("#key", key)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#count")
    assert page.url == f"{site.base}/trial?status=x"
    assert addresses
    assert not [each for each in addresses if key in each]
    assert key not in await page.content()
    kept = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, name])"
    told = await page.evaluate(kept)
    assert key not in told
    [cookie] = [each for each in await page.context.cookies() if each["name"] == "headrace"]
    assert cookie["value"] not in told
    assert key not in caplog.text
    assert cookie["value"] not in caplog.text
