"""Pages of bundles: a session opens them and reads; everything else needs a key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

import headrace
import headrace.bundles
from tests.bundles.conftest import SOURCE
from tests.dashboard.conftest import MakeSite, Windows
from tests.dashboard.test_session import client
from tests.server.conftest import a_key, bearer

APPS = Path(__file__).parents[2] / "apps"
DONE: list[str] = []


def routes(setup: object) -> headrace.bundles.Routes:
    """What a page could ask for."""
    found = headrace.bundles.Routes()

    async def books() -> list[str]:
        return ["Emma"]

    async def change() -> str:
        DONE.append("changed")
        return "done"

    found.add("GET", "/books", books, scope="read")
    found.add("GET", "/secrets", books, scope="admin")
    found.add("GET", "/count", change, scope="read", changes=True)
    found.add("POST", "/books", change, scope="read")
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def app(tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App with a bundle that has a page."""
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=str(tmp_path / "files"))
    page = headrace.bundles.Page(str(SOURCE / "page"), title="Books")
    app.load_bundle(headrace.Bundle("shelf", summary="Books", routes=routes, page=page))
    async with app:
        yield app


async def test_a_session_opens_the_page_of_a_bundle(
    app: headrace.App, make_site: MakeSite, windows: Windows
) -> None:
    site = await make_site(app, root_path="/a/b")
    # The page has no icon.
    windows.expected = "404"
    key = await a_key(app, "read")
    page = await windows.open(f"{site.url}/a/b/ui/bundles/shelf/")
    await page.fill("#key", key)
    async with page.expect_response("**/shelf/books") as asked:
        await page.keyboard.press("Enter")
    assert (await asked.value).status == 200
    await page.goto(f"{site.url}/a/b/ui/workers")
    await page.click("nav >> text=shelf")
    await page.wait_for_function("() => document.title === 'Books'")
    # `../` leads back, from here and from the bundle's own path.
    await page.goto(f"{page.url}../")
    assert page.url == f"{site.url}/a/b/ui/"
    await page.goto(f"{site.url}/a/b/shelf/../")
    assert page.url == f"{site.url}/a/b/ui/"


def test_pages_of_this_project_lead_back() -> None:
    pages = sorted(APPS.glob("*/src/*/page/index.html"))
    assert len(pages) >= 3
    for page in pages:
        assert '<a href="../">Headrace dashboard</a>' in page.read_text(), page


async def test_a_session_does_nothing_else_there(app: headrace.App, make_site: MakeSite) -> None:
    DONE.clear()
    site = await make_site(app, root_path="/a/b")
    async with client(site) as stranger:
        base = "/a/b/ui/bundles/shelf"
        key = await a_key(app)
        people = {"Accept": "text/html"}
        lead = await stranger.get(f"{base}/", headers=people)
        assert lead.headers["location"] == "/a/b/ui/session?back=%2Fbundles%2Fshelf%2F"
        assert (await stranger.get(f"{base}/books")).status_code == 401
        signed = await stranger.post("/a/b/ui/session", data={"key": key})
        assert signed.status_code == 303
        cookies = {"Cookie": signed.headers["set-cookie"].partition(";")[0]}
        books = await stranger.get(f"{base}/books", headers=cookies)
        assert (books.status_code, books.json()) == (200, ["Emma"])
        for method, path in (("GET", "secrets"), ("GET", "count"), ("POST", "books")):
            answer = await stranger.request(method, f"{base}/{path}", headers=cookies)
            assert answer.status_code == 401, path
        for site_of in ("cross-site", "same-site"):
            headers = cookies | {"Sec-Fetch-Site": site_of}
            assert (await stranger.get(f"{base}/books", headers=headers)).status_code == 403
        # The cookie counts nowhere else, and what is asked below the page stays below it.
        for path in ("/a/b/shelf/books", "/a/b/jobs", f"{base}/%2e%2e/jobs", f"{base}//jobs"):
            answer = await stranger.get(path, headers=cookies)
            assert answer.status_code in (401, 404), path
        assert (await stranger.get("/a/b/ui/bundles/other/", headers=cookies)).status_code == 404
        assert DONE == []
        # A key in a header does what it may, as at the bundle's own path.
        assert (await stranger.post(f"{base}/books", headers=bearer(key))).status_code == 200
        assert DONE == ["changed"]
