"""The page in a real browser: drop files, watch their stages, find, open the original, delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from ingest_support.embedding_server import EmbeddingServer, an_embedding_server
from ingest_support.scene import a_browser, a_page, a_scene
from playwright.async_api import Page, expect
from tests.support.browser import NONE_FOUND, find_headless

pytestmark = pytest.mark.skipif(find_headless() is None, reason=NONE_FOUND)

PHONE = 390
# The first document loads the model, and the first question too.
SLOW = 60_000
# The server counts an emoji as one character, and scripts as two.
TEXT = "🦜🦜 Parrots can live for eighty years. Call 010-2345-6789."
DROP = """files => {
    const moved = new DataTransfer();
    for (const [name, text] of files) moved.items.add(new File([text], name));
    const drop = document.getElementById("drop");
    for (const type of ["dragover", "drop"]) {
        const options = { dataTransfer: moved, bubbles: true, cancelable: true };
        drop.dispatchEvent(new DragEvent(type, options));
    }
}"""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with an_embedding_server() as made:
        yield made


async def check(page: Page) -> None:
    """Nobody is left out, and nothing is wider than the window."""
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide


async def test_files_are_handed_in_watched_found_opened_and_deleted(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene, a_browser() as browser:
        page = await a_page(browser, scene.address)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda asked: asked.accept())
        await expect(page.locator("#empty")).to_be_visible()
        await page.fill("#path", "/birds")
        parrots = {"name": "<b>앵무새.txt", "mimeType": "text/plain", "buffer": TEXT.encode()}
        await page.set_input_files("#files", [parrots])  # type: ignore[list-item]
        await expect(page.locator("#upload-note")).to_have_text("1 of 1 handed in.")
        row = page.locator("#documents tr")
        await expect(row).to_contain_text("✓ completed", timeout=SLOW)
        await expect(row.locator("td").nth(0)).to_have_text("<b>앵무새.txt")
        await expect(row).to_contain_text("phone")
        await page.evaluate(DROP, [["owls.txt", "Owls hunt at night."], [".hidden", "not sent"]])
        await expect(page.locator("#documents td.completed")).to_have_count(2, timeout=SLOW)
        await expect(page.locator("#about")).to_contain_text("2 documents, 2 chunks")

        await page.fill("#query", "How old do parrots get?")
        await page.press("#query", "Enter")
        hit = page.locator("#hits li").first
        await expect(hit.locator("mark").first).to_have_text("Parrots", timeout=SLOW)
        await expect(hit).to_contain_text("[PHONE]")
        await expect(hit).not_to_contain_text("2345")
        await check(page)
        async with page.expect_download() as opened:
            await hit.get_by_role("button", name="Open the original of").click()
        saved = await (await opened.value).path()
        assert saved.read_bytes() == TEXT.encode()

        await page.get_by_role("button", name="Delete owls.txt").click()
        await expect(page.locator("#documents tr")).to_have_count(1)
        await expect(page.locator("#about")).to_contain_text("1 document, 1 chunk")
        assert wrong == []


async def test_stages_are_shown_while_they_run_and_what_is_wrong_on_a_phone(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    settings = {"embedding_url": server.url, "embedding_key": "k", "embedding_dimensions": 4}
    async with a_scene(tmp_path, **settings) as scene, a_browser() as browser:
        page = await a_page(browser, scene.address, width=PHONE, scheme="dark")
        server.hold()
        files = [
            {"name": "parrots.txt", "mimeType": "text/plain", "buffer": TEXT.encode()},
            {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""},
            {"name": "invoice\u202efdp.exe", "mimeType": "text/plain", "buffer": b"text"},
        ]
        await page.set_input_files("#files", files)  # type: ignore[arg-type]
        note = page.locator("#upload-note")
        await expect(note).to_contain_text("2 of 3 handed in. 1 refused: invoice\\u202efdp.exe:")
        await expect(note).to_contain_text("rename the file without it")
        assert "\u202e" not in str(await note.text_content())
        row = page.locator("#documents tr", has_text="parrots.txt")
        await expect(row).to_contain_text("47% embedding", timeout=SLOW)
        await expect(row.get_by_role("progressbar")).to_have_attribute("value", "47")
        await expect(page.locator("#documents tr", has_text="empty.txt")).to_contain_text(
            "is empty"
        )
        await check(page)
        server.release()
        # Without a reload.
        await expect(row).to_contain_text("✓ completed", timeout=SLOW)
        await check(page)
        await page.fill("#search-path", "parrots")
        await page.fill("#query", "parrots")
        await page.press("#query", "Enter")
        await expect(page.locator("#search-note")).to_contain_text("must begin with a slash")
