"""System: the engine's report, versions, bundles, and no secret among the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.server.dashboard.pages import system
from headrace.server.dashboard.pages.system import bundle_states
from headrace.server.listen import listening
from headrace.version import __version__
from tests.dashboard.conftest import (
    MakeSite,
    Site,
    Windows,
    is_live,
)
from tests.dashboard.test_session import client, signed_in
from tests.server.conftest import a_key, make_app


async def test_versions_and_findings_are_shown(site: Site) -> None:
    async with client(site) as browser:
        page = (await browser.get("/ui/system")).text
        report = await site.app.engine.report()
        assert f"sqlite {report.server_version}" in page
        assert f"version {report.schema_version}" in page
        assert f"Headrace {__version__}, Python" in page
        assert "agrees with ours" in page
        assert "headrace doctor" in page
        for link in ("/docs", "/metrics"):
            assert f'href="{link}"' in page


async def test_the_engine_is_asked_seldom(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    real = site.app.engine.report

    async def counted() -> object:
        nonlocal asked
        asked += 1
        return await real()

    async with client(site) as browser:
        assert system.FRESH_SECONDS >= 10
        monkeypatch.setattr(system, "FRESH_SECONDS", 1e9)  # however slow this machine is
        await browser.get("/ui/system")
        monkeypatch.setattr(site.app.engine, "report", counted)
        for _ in range(5):
            await browser.get("/ui/system")
        assert asked == 0
        monkeypatch.setattr(system, "FRESH_SECONDS", 0.0)
        await browser.get("/ui/system")
        assert asked == 1


async def test_settings_are_shown_without_secrets(make_site: MakeSite, tmp_path: Path) -> None:
    settings = {"api_url": "https://ada:hunter22@api.example.com", "api_key": "hr_hunter22"}
    async with make_app(f"sqlite:///{tmp_path}/other.db", tmp_path, **settings) as app:
        site = await make_site(app)
        async with client(site) as browser:
            page = (await browser.get("/ui/system")).text
            assert "https://ada:***@api.example.com" in page
            assert "hunter22" not in page


async def test_settings_are_for_admins_and_nothing_for_keys_of_some_queues(
    make_site: MakeSite,
) -> None:
    site = await make_site()
    async with signed_in(site, await a_key(site.app, "read")) as browser:
        page = await browser.get("/ui/system")
        assert page.status_code == 200
        assert "Settings in force" not in page.text
        assert "lease_seconds" not in page.text
    async with signed_in(site, await a_key(site.app, "admin", queues=["mail"])) as browser:
        assert (await browser.get("/ui/system")).status_code == 403


async def test_bundles_are_ready_or_say_why_not(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path)
    assert bundle_states(app) == []

    def register(app: headrace.App, setup: object) -> None:
        @app.task
        async def buy() -> None: ...

    app.load_bundle(headrace.Bundle("shop", summary="A shop.", register=register))
    app.load_bundle(headrace.Bundle("broken", summary="None."))
    bad = app.bundles.find("broken")
    assert bad is not None
    app.bundles.fail(bad, ValueError("no <b>tables</b>"))
    async with (
        app,
        listening(app, host="127.0.0.1", port=0) as url,
        client(Site(app, url)) as browser,
    ):
        page = (await browser.get("/ui/system")).text
    assert "no &lt;b&gt;tables&lt;/b&gt;" in page
    assert "cannot be used" in page
    assert [(each.name, each.tasks, each.failure is None) for each in bundle_states(app)] == [
        ("broken", 0, False),
        ("shop", 1, True),
    ]


async def test_two_keys_lead_to_the_page(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/workers")
    await is_live(page)
    await page.keyboard.type("gy")
    await page.wait_for_url("**/system")
    await is_live(page)
