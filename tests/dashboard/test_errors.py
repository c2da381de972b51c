"""Errors: failures in groups with right counts, and exactly one group is retried."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest

from headrace.engine.base import Engine
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.monitor import errors as error_module
from headrace.server.dashboard.jobs.query import typed_time
from headrace.server.dashboard.shared_reads import TRACEBACK_CHARACTERS
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.scenes import failed_jobs, unreachable
from tests.dashboard.test_front_page import shown
from tests.dashboard.test_session import client, signed_in
from tests.server.conftest import a_key, make_app, run_jobs

MISSING = ("KeyError", "'name'")


def groups(html: str) -> list[tuple[str, str, str]]:
    """Type of the error, task and count of each row."""
    rows = re.findall(r'<tr id="error-.*?</tr>', html, re.DOTALL)
    found = []
    for row in rows:
        [kind] = re.findall(r"<a [^>]*>([^<]*)</a>", row)[:1]
        [task] = re.findall(r'data-label="Task"><span>([^ <]*)', row)
        [count] = re.findall(r'data-label="Failures" class="number">([^<]*)<', row)
        found.append((kind, task, count))
    return found


def link(html: str, text: str) -> str:
    """Where a link with this text leads, below the dashboard."""
    found = re.search(rf'<a[^>]*href="/ui([^"]*)"[^>]*>{re.escape(text)}</a>', html)
    assert found is not None, text
    return unescape(found[1])


async def three_errors(engine: Engine, *counts: int) -> list[list[str]]:
    """Three kinds of errors in two tasks."""
    lost, missing, elsewhere = counts
    return [
        await failed_jobs(engine, "send", unreachable(lost)),
        await failed_jobs(engine, "send", [MISSING] * missing),
        await failed_jobs(engine, "read", unreachable(elsewhere), queue="scans"),
    ]


async def test_groups_and_filters(site: Site) -> None:
    assert "No job has failed." in await shown(site, "/errors")
    await three_errors(site.app.engine, 30, 20, 10)
    html = await shown(site, "/errors?within=hour")
    assert groups(html) == [
        ("ConnectionError", "send", "30"),
        ("KeyError", "send", "20"),
        ("ConnectionError", "read", "10"),
    ]
    assert "60 failures" in html
    counts = {
        "task=send": ["30", "20"],
        "queue=scans": ["10"],
        "error_type=KeyError": ["20"],
        "error_type=KeyError&error_type=ConnectionError&task=read": ["10"],
        "until=2020-01-01T00:00Z": [],
        "since=2020-01-01T00:00Z": ["30", "20", "10"],
        "since=2020-01-01 00:00": ["30", "20", "10"],
        "task=none": [],
    }
    for query, expected in counts.items():
        html = await shown(site, f"/errors?{query}")
        assert [each[2] for each in groups(html)] == expected, query
    assert "No failure matches." in html


def test_times_are_understood_as_people_type_them() -> None:
    now = datetime(2026, 1, 31, 3, 0, tzinfo=UTC)
    assert typed_time("02:30", now) == "2026-01-31T02:30:00+00:00"
    assert typed_time("23:10:05", now) == "2026-01-30T23:10:05+00:00"
    assert typed_time("2026-01-30 02:30", now) == "2026-01-30T02:30:00+00:00"
    assert typed_time("2026-01-30T02:30:00+01:00", now) == "2026-01-30T02:30:00+01:00"
    assert typed_time("25:00", now) == "25:00"


async def test_times_that_cannot_be_understood_are_explained(site: Site) -> None:
    async with client(site) as browser:
        for query in ("since=yesterday", "within=week", "color=red"):
            answer = await browser.get(f"/ui/errors?{query}")
            assert answer.status_code == 422, query
            assert query.split("=")[0] in answer.text
        answer = await browser.get("/ui/errors/group")
        assert answer.status_code == 422


async def test_a_cut_search_says_how_far_it_went(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PAGE", 10), ("STEP", 10), ("LOOK", 20)):
        monkeypatch.setattr(error_module, name, value)
    await three_errors(site.app.engine, 30, 20, 10)
    html = await shown(site, "/errors")
    assert "The newest 20 failures; searched back to" in html
    assert "5,000" in html


async def test_a_group_shows_how_its_newest_job_failed(site: Site) -> None:
    await site.app.enqueue("broken", {})
    await run_jobs(site.app)
    html = await shown(site, link(await shown(site, "/errors"), "ValueError"))
    assert "Traceback (most recent call last)" in html
    assert "it broke" in html
    assert 'aria-label="Failures by minute"' in html


async def test_hidden_values_are_nowhere(site: Site) -> None:
    await site.app.enqueue("broken", {"password": "hunter22-secret"})
    await run_jobs(site.app)
    html = await shown(site, "/errors")
    group = await shown(site, link(html, "ValueError"))
    for each in (html, group, await shown(site)):
        assert "hunter22" not in each
    assert "cannot log in with [redacted]" in group
    # Nobody may look for what is hidden, so the group cannot be picked by it.
    assert "Retry this group …" not in html + group
    assert "Part of the message is hidden" in group


async def test_long_tracebacks_are_cut(make_site: MakeSite, tmp_path: Path) -> None:
    async with make_app(f"sqlite:///{tmp_path}/long.db", tmp_path) as app:

        @app.task(retries=0)
        async def deep() -> None:
            raise RuntimeError("x" * 100 * TRACEBACK_CHARACTERS)

        site = await make_site(app)
        await app.enqueue("deep")
        await run_jobs(app)
        html = await shown(site, link(await shown(site, "/errors"), "RuntimeError"))
        assert len(html) < 5 * TRACEBACK_CHARACTERS


async def test_a_group_that_is_gone_says_so(site: Site) -> None:
    query = "task=send&error_type=KeyError&fingerprint=0123456789abcdef"
    assert "No failure of this kind is left." in await shown(site, f"/errors/group?{query}")


async def test_a_reader_cannot_retry(make_site: MakeSite) -> None:
    site = await make_site()
    await three_errors(site.app.engine, 3, 2, 1)
    async with signed_in(site, await a_key(site.app, "read")) as browser:
        html = (await browser.get("/ui/errors")).text
        assert len(groups(html)) == 3
        group = (await browser.get("/ui" + link(html, "KeyError"))).text
        assert "/jobs/bulk" not in html + group
        assert "Retry" not in html + group


async def test_only_those_before_a_time(site: Site, windows: Windows) -> None:
    engine = site.app.engine
    await failed_jobs(engine, "send", [MISSING] * 4)
    middle = datetime.now(UTC)
    await failed_jobs(engine, "send", [MISSING] * 3)
    page = await windows.open(site.base + link(await shown(site, "/errors"), "KeyError"))
    await is_live(page)
    assert await page.inner_text("#group-count") == "7"
    await page.fill("#finished-until", middle.isoformat())
    await page.keyboard.press("Enter")
    await page.wait_for_selector("text=4 jobs would be run again")


async def failed(engine: Engine, **fields: object) -> int:
    wanted = JobFilter(statuses=(Status.FAILED,), **fields)  # type: ignore[arg-type]
    return (await engine.count_jobs(wanted)).count


async def test_retrying_one_of_three_groups_changes_exactly_its_jobs(
    site: Site, windows: Windows
) -> None:
    engine = site.app.engine
    _, missing, _ = await three_errors(engine, 3_000, 1_500, 500)
    page = await windows.open(f"{site.base}/errors", color_scheme="dark")
    await is_live(page)
    cells = await page.locator("#live-errors td[data-label=Failures]").all_inner_texts()
    assert cells == ["3,000", "1,500", "500"]
    await page.locator("#live-errors a", has_text="KeyError").first.click()
    await page.wait_for_selector("#group-count")
    assert await page.inner_text("#group-count") == "1,500"
    await page.click("button:has-text('Retry this group')")
    await page.wait_for_selector("text=1,500 jobs would be run again")
    # Those that fail while somebody reads the preview are not meant.
    await failed_jobs(engine, "send", [MISSING] * 5)
    await page.fill("#sure", "1500")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#live-bulk [data-status=completed]")
    assert (await page.inner_text("#changed")).startswith("1,500 of 1,500")
    assert await failed(engine) == 3_505
    assert await failed(engine, error_types=("KeyError",)) == 5
    assert await failed(engine, tasks=("read",)) == 500
    for number in range(0, len(missing), 500):
        jobs = await engine.get(missing[number : number + 500])
        assert {job.status for job in jobs} == {Status.PENDING}


async def test_a_group_is_opened_by_keyboard(site: Site, windows: Windows) -> None:
    await three_errors(site.app.engine, 3, 2, 1)
    page = await windows.open(f"{site.base}/errors")
    await is_live(page)
    # The second row, and into it.
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#group-count")
    assert await page.inner_text("#group-count") == "2"
    await is_live(page)
