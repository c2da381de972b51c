"""Pictures in the documentation: each page has one, and the scene they show has no fault."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from headrace.server.dashboard.page import navigation
from tests.dashboard.conftest import Site, Windows, check_width
from tests.dashboard.pictures import FOLDER, open_shop, pictures, settled, sign_in
from tests.dashboard.shop import Shop
from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "how-to" / "dashboard.md"
MOST_KILOBYTES = 150
MOST_TOGETHER = 2_048
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.png)\)")


def shown(page: Path) -> dict[str, str]:
    """The pictures that a page shows, by name, with what is said for those who cannot see them."""
    return {Path(target).stem: text for text, target in SHOWN.findall(page.read_text("utf-8"))}


def test_every_page_of_the_navigation_has_a_picture_in_the_tour() -> None:
    found = shown(PAGE)
    assert {each.title.lower() for each in navigation()} <= set(found)
    for name, text in found.items():
        assert (FOLDER / f"{name}.png").is_file(), name
        assert len(text.split()) > 3, f"{name}: say what is to be seen"
    assert shown(ROOT / "README.md").keys() == {"now"}


def test_every_picture_is_shown_somewhere() -> None:
    stored = {each.stem for each in FOLDER.glob("*.png")}
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    assert stored == {name for page in pages for name in shown(page)}


def test_pictures_are_small() -> None:
    sizes = {each.name: each.stat().st_size / 1024 for each in FOLDER.glob("*.png")}
    assert not {name: size for name, size in sizes.items() if size > MOST_KILOBYTES}
    assert sum(sizes.values()) <= MOST_TOGETHER


@pytest_asyncio.fixture(loop_scope="session")
async def shop(tmp_path: Path) -> AsyncIterator[tuple[Shop, Site]]:
    async with open_shop(tmp_path) as opened:
        yield opened


async def test_the_scene_has_no_page_with_a_fault(
    shop: tuple[Shop, Site], windows: Windows
) -> None:
    scene, site = shop
    page = await (await windows.context()).new_page()
    await sign_in(page, site, scene)
    wanted = pictures(scene)
    assert {each.name for each in wanted} == {each.stem for each in FOLDER.glob("*.png")}
    for path in sorted({each.path for each in wanted}):
        await page.goto(site.base + path)
        await settled(page)
        assert await page.locator("[data-problem]").count() == 0, path
        await check_width(page)
    # What the tour tells of is there.
    await page.goto(f"{site.base}/")
    cards = await page.locator("article.finding").all_inner_texts()
    for words in ("is paused by ada", "is lost", "is held by job", "jobs failed in the last"):
        assert any(words in card for card in cards), words
