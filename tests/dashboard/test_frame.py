"""The frame: prefixes, policies, hostile names, and what the templates must not have."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from jinja2 import ChoiceLoader, DictLoader

import headrace.server
from headrace.loops.sockets import bind, url_of
from headrace.server.auth.guard import LOCAL
from headrace.server.dashboard import assets, words
from headrace.server.dashboard.action import action
from headrace.server.dashboard.page import Shown, all_pages
from headrace.server.dashboard.render import LIVE, LONGEST_ON_LOOP, environment, render_parts
from headrace.server.dashboard.visit import Visit
from headrace.server.listen import HttpServer
from headrace.server.service import Service
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.proxy import proxy
from tests.dashboard.test_session import client
from tests.dashboard.trial import TRIAL
from tests.server.conftest import a_key
from tests.support.processes import until

BASE = "base.html"
TEMPLATES = Path(assets.__file__).parent / "templates"
HOSTILE = "<script>alert(1)</script>\"'&\u202e\U0001f600({{ 7*7 }})"


@asynccontextmanager
async def serving(application: FastAPI, root_path: str = "") -> AsyncIterator[str]:
    """Serve an application of somebody else. `root_path` is what a proxy takes away."""
    sock = bind("127.0.0.1", 0)
    config = uvicorn.Config(application, log_config=None, lifespan="off", root_path=root_path)
    server = HttpServer(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    await until(lambda: server.started, "the start of the server")
    yield url_of(sock)
    server.should_exit = True
    await task
    sock.close()


async def walk(windows: Windows, base: str, key: str) -> None:
    """Sign in, follow every kind of link, send a form, and be live all the time."""
    page = await windows.open(f"{base}/trial")
    await page.fill("#key", key)
    await page.click("button.primary")
    await is_live(page)
    TRIAL.count += 1
    await page.wait_for_function(
        "n => document.getElementById('count').textContent === String(n)", arg=TRIAL.count
    )
    await page.click("details.confirm summary")
    await page.click("dialog button.primary")
    await page.wait_for_selector(".said")
    assert page.url == f"{base}/trial"
    await page.click("#detail")
    assert await page.inner_text("#name") == "foo/bar.baz?x#y"
    await page.click("nav >> text=Workers")
    await page.wait_for_selector("#live-workers")
    cookies = [each for each in await page.context.cookies() if each["name"] == "headrace"]
    assert [each["path"] for each in cookies] == [base.split("/", 3)[3].join(("/", ""))]
    await page.click("text=Sign out")
    await page.wait_for_selector("#key")


@pytest.mark.parametrize("strips", [False, True])
async def test_behind_a_proxy_with_a_prefix(
    make_site: MakeSite, windows: Windows, strips: bool
) -> None:
    site = await make_site(root_path="/a/b")
    key = await a_key(site.app)
    async with proxy(site.url, strip="/a/b" if strips else "") as url:
        await walk(windows, f"{url}/a/b/ui", key)
    # Links of the API know the prefix as well.
    async with client(site) as browser:
        bearer = {"Authorization": f"Bearer {key}"}
        document = await browser.get("/openapi.json", headers=bearer)
        assert document.json()["servers"] == [{"url": "/a/b"}]


@pytest.mark.parametrize("front", ["", "/p", "/p stripped"])
async def test_mounted_in_another_application(site: Site, windows: Windows, front: str) -> None:
    prefix, _, strips = front.partition(" ")
    key = await a_key(site.app)
    outer = FastAPI()
    outer.mount("/a/b" if strips else f"{prefix}/a/b", headrace.server.create(site.app))
    taken = prefix if strips else ""
    async with serving(outer, taken) as inner, proxy(inner, strip=taken) as url:
        await walk(windows, f"{url if front else inner}{prefix}/a/b/ui", key)
        for context in windows.contexts:
            await context.close()


async def test_every_address_on_every_page_is_below_the_prefix(make_site: MakeSite) -> None:
    site = await make_site(root_path="/a/b")
    await site.app.enqueue("add", {"a": 1, "b": 2})
    async with client(site) as browser:
        for page in (each for each in all_pages() if "{" not in each.path):
            extra = {"/jobs/bulk": "?action=retry", "/errors/group": "?task=x&fingerprint=1"}
            text = (await browser.get(f"/ui{page.path}{extra.get(page.path, '')}")).text
            found = re.findall(r'\b(?:href|src|action|data-next|data-preview)="([^"]*)"', text)
            assert len(found) >= 15, page.path
            assert not [
                each for each in found if not each.startswith(("/a/b/", "#"))
            ], page.path  # fmt: skip
            assert 'data-root="/a/b/ui"' in text


async def test_hostile_names_are_text(site: Site, windows: Windows) -> None:
    TRIAL.name = HOSTILE
    TRIAL.rows = ["x"]
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    assert await page.inner_text("#detail") == HOSTILE
    await page.click("details.confirm summary")
    assert HOSTILE in await page.inner_text("dialog .question")
    TRIAL.name = HOSTILE + "2"
    TRIAL.count = 1
    await page.wait_for_function("() => document.getElementById('count').textContent === '1'")
    assert await page.evaluate("document.querySelectorAll('main script').length") == 0


async def test_the_beginning_leads_people_to_the_dashboard(site: Site) -> None:
    async with client(site) as browser:
        people = {"Accept": "text/html,*/*"}
        for path in ("/", "/ui"):
            answer = await browser.get(path, headers=people)
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")
        assert (await browser.get("/")).json()["status"] == 404


async def test_it_can_be_left_out(make_site: MakeSite) -> None:
    site = await make_site(dashboard=False)
    async with client(site) as browser:
        assert (await browser.get("/ui/workers")).status_code == 404
        assert (await browser.get("/", headers={"Accept": "text/html"})).status_code == 404


async def test_what_takes_long_to_render_leaves_the_event_loop(site: Site) -> None:
    threads: list[int] = []

    def slow() -> str:
        threads.append(threading.get_ident())
        time.sleep(2 * LONGEST_ON_LOOP)
        return ""

    source = '{% extends "base.html" %}{% block live_x %}<p id="live-x">{{ slow() }}{% endblock %}'
    environment().loader = ChoiceLoader(
        [environment().loader or DictLoader({}), DictLoader({"slow.html": source})]
    )
    visit = Visit(service=Service, caller=LOCAL, root="/ui", path="/slow")  # type: ignore[arg-type]
    for _ in range(2):
        await render_parts(Shown("slow.html", slow=slow), visit)
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [True, False]


def test_scripts_and_styles_are_small() -> None:
    assert len(assets.files()["headrace.js"]) <= 25_000
    assert len(assets.style_sheet()) <= 20_000


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_templates_have_nothing_inline(path: Path) -> None:
    text = path.read_text()
    # The style sheet is the one thing that is; the policy names its digest.
    rest = text.replace("<style>{{ style_sheet() }}</style>", "") if path.name == BASE else text
    assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:|\|\s*safe\b|<style", rest)
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts in ([], ['<script type="module" src="{{ static(\'headrace.js\') }}">'])
    # Every live part is one element with the name of its block.
    for name in environment().from_string(text).blocks:
        if name.startswith(LIVE):
            found = re.search(
                rf"{{% block {name} %}}(?:\s*{{%[^%]*%}})*\s*<[a-z]+ id=\"([^\"]+)\"", text
            )
            assert found is not None, name
            assert found[1] == name.replace("_", "-")


def test_an_action_needs_a_scope() -> None:
    with pytest.raises(TypeError, match="scope"):
        action("/trial/other")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, words.NONE), (0.04, "40 ms"), (2.5, "2.5 s"), (59.6, "1 min"), (3_905, "1 h 5 min"),
     (86_400, "1 d"), (90_061, "1 d 1 h"), (-75, "\N{MINUS SIGN}1 min 15 s")],
)  # fmt: skip
def test_durations(seconds: float | None, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, words.NONE), (0, "0"), (12_345, "12,345"), (2.5, "2.5"), (250.4, "250"),
     (2**63 - 1, "9,223,372,036,854,775,807")],
)  # fmt: skip
def test_numbers(value: float | None, said: str) -> None:
    assert words.number(value) == said


@pytest.mark.parametrize(
    ("count", "said"), [(None, words.NONE), (0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB")]
)
def test_sizes(count: int | None, said: str) -> None:
    assert words.size(count) == said


def test_times_in_sentences_are_times() -> None:
    time = '<time datetime="2026-03-10T03:03:01Z"{}>2026-03-10 03:03:01 UTC</time>'
    exact, counted = time.format(""), time.format(" data-relative")
    assert words.timed("<b> at 2026-03-10 03:03:01 UTC.") == f"&lt;b&gt; at {exact}."
    # How far it is away is counted by the browser: what is sent does not change each second.
    for away in ("in 600 s", "in 599 s", "now"):
        found = words.timed(f"Due at 2026-03-10 03:03:01 UTC ({away}).")
        assert found == f"Due at {exact} ({counted})."
