"""The policy for browsers: on every page, on every refusal, and strict."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from headrace.errors import EngineUnavailable
from headrace.server.dashboard.action import all_actions
from headrace.server.dashboard.page import all_files, all_pages
from headrace.server.dashboard.responses import POLICY
from tests.dashboard.conftest import MakeSite, Site
from tests.dashboard.test_session import client, signed_in, token
from tests.dashboard.trial import TRIAL
from tests.server.conftest import a_key

# What is no page: a browser must not do anything with it.
NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"


def checked(answer: httpx.Response, *statuses: int) -> httpx.Response:
    """Fail if an answer lacks its policy."""
    where = f"{answer.request.method} {answer.request.url}"
    assert answer.status_code in statuses, f"{where}: {answer.status_code} {answer.text[:300]}"
    page = answer.headers.get("content-type", "").startswith("text/html")
    assert answer.headers.get_list("content-security-policy") == [POLICY if page else NOTHING], (
        where
    )
    assert answer.headers["x-content-type-options"] == "nosniff", where
    assert answer.headers["x-frame-options"] == "DENY", where
    if page:
        assert answer.headers["cache-control"] == "no-store", where
        assert answer.headers["referrer-policy"] == "same-origin", where
    return answer


def filled(path: str) -> str:
    """A path with something in place of its parameters."""
    return "/ui" + re.sub(r"\{[^}]*\}", "x", path)


def test_it_is_strict() -> None:
    rules = dict(each.partition(" ")[::2] for each in POLICY.split("; "))
    assert rules.pop("style-src").startswith("'sha256-")
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "headrace",
    }


async def test_every_page_has_it(site: Site) -> None:
    """Those that need something that is not there say so, with the policy."""
    async with client(site) as browser:
        for page in all_pages():
            answer = await browser.get(filled(page.path))
            checked(answer, 200, 404, 422)
            assert answer.text.startswith("<!doctype html>"), page.path
            checked(await browser.get(f"{filled(page.path)}?statos=failed"), 422)


async def test_every_refusal_has_it(site: Site) -> None:
    async with client(site) as browser:
        checked(await browser.get("/ui/nothing"), 404)
        checked(await browser.get("/ui/static/headrace.0000.js"), 404)
        checked(await browser.get("/ui/stream?view=/nothing"), 404)
        checked(await browser.put("/ui/trial"), 405)
        misspelt = checked(await browser.get("/ui/trial?statos=failed"), 422)
        assert "did you mean &#34;status&#34;?" in misspelt.text
        for file in all_files():
            checked(await browser.get(filled(file.path)), 404, 422)
        given = {"token": await token(browser)}
        for action in all_actions():
            path = filled(action.path)
            checked(await browser.post(path, data={"x": ""}), 403)
            elsewhere = {"Origin": "http://elsewhere.example"}
            checked(await browser.post(path, data=given, headers=elsewhere), 403)
        # Sent from here, it goes back to its page.
        checked(await browser.post("/ui/trial/act", data=given), 303)


@pytest.mark.parametrize(
    ("error", "status"), [(EngineUnavailable("away"), 503), (ZeroDivisionError("broken"), 500)]
)
async def test_what_breaks_has_it(site: Site, error: Exception, status: int) -> None:
    TRIAL.error = error
    async with client(site) as browser:
        checked(await browser.get("/ui/trial"), status)


async def test_sign_in_has_it(make_site: MakeSite) -> None:
    site = await make_site()
    key = await a_key(site.app, scope="read")
    nothing: dict[str, Any] = {"x": ""}
    async with client(site) as browser:
        checked(await browser.get("/ui/session"), 200)
        checked(await browser.post("/ui/session", data={"key": "hr_wrong"}), 401)
        checked(await browser.get("/ui/stream?view=/trial"), 401)
        checked(await browser.get("/ui/session/state"), 401)
        for path in (*(page.path for page in all_pages()), *(file.path for file in all_files())):
            checked(await browser.get(filled(path)), 303)
        for action in all_actions():
            checked(await browser.post(filled(action.path), data=nothing), 403)
    async with signed_in(site, key) as browser:
        given = {"token": await token(browser)}
        for action in all_actions():
            checked(await browser.post(filled(action.path), data=given), 403)
        for page in all_pages():
            if page.scope != "read":
                checked(await browser.get(filled(page.path)), 403)


async def test_files_of_pages_are_kept_and_are_what_they_say(site: Site) -> None:
    async with client(site) as browser:
        page = (await browser.get("/ui/trial")).text
        found = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', page)
        assert len(found) == 2
        for path in found:
            answer = checked(await browser.get(path), 200)
            assert "immutable" in answer.headers["cache-control"]
