"""The page in a real browser: write a dialogue, hear it while it is made, keep it or delete it."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect
from speech_support.scene import a_browser, a_page, a_scene
from speech_support.speech_server import SpeechServer
from tests.support.browser import NONE_FOUND, find_headless
from tests.support.processes import until

from headrace_speech.store.records import AudioFilter

pytestmark = pytest.mark.skipif(find_headless() is None, reason=NONE_FOUND)

PHONE = 390


async def check(page: Page) -> None:
    """Nobody is left out, and nothing is wider than the window."""
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide


async def test_a_dialogue_is_written_heard_while_it_is_made_and_deleted(
    tmp_path: Path, server: SpeechServer
) -> None:
    settings = {"openai_url": server.url, "openai_key": "k"}
    async with a_scene(tmp_path, **settings) as (made, address), a_browser() as browser:
        page = await a_page(browser, address)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda asked: asked.accept())
        await page.select_option("#provider", "openai")
        await expect(page.get_by_label("Voice of Tom")).to_have_value("alloy")
        await expect(page.get_by_label("Variant of Tom")).to_be_hidden()
        await page.get_by_label("Voice of Tom").select_option("echo")
        await page.fill("#title", "Two <b>words</b>")
        await page.get_by_label("Text of turn 1").fill("one")
        await page.get_by_label("Text of turn 2").fill("two")
        server.hold = True
        await page.click("#speak")
        await until(lambda: server.held == ["one"], "the first turn")
        first = page.get_by_role("button", name="Play turn 1 of")
        await expect(first).to_be_disabled()
        listen = page.get_by_role("button", name="Listen to Two")
        await listen.click()
        async with page.expect_request("**/turns/1"):
            server.release("one")
        # The whole is not there yet, and the first turn is heard.
        await expect(first).to_be_enabled()
        await expect(page.get_by_role("button", name="Play turn 2 of")).to_be_disabled()
        assert await page.locator("#jobs audio").count() == 0
        await until(lambda: server.held == ["two"], "the second turn")
        async with page.expect_request("**/turns/2"):
            server.release_all()
        player = page.locator("#jobs audio")
        await expect(player).to_have_count(1)
        seconds = await player.evaluate(
            """player => new Promise((resolve, reject) => {
                player.onloadedmetadata = () => resolve(player.duration);
                player.onerror = () => reject(player.error.message);
                player.load();
                player.preload = "metadata";
            })"""
        )
        assert seconds == pytest.approx(0.46, abs=0.15)
        await expect(page.locator("#jobs h3")).to_have_text("Two <b>words</b>")
        [view], _ = await made.dialogues.audio_files(AudioFilter(), limit=5, after=None)
        assert (view.title, view.turns) == ("Two <b>words</b>", 2)
        voices = [each["voice"] for each in server.requests]
        assert voices == ["alloy", "echo"]
        await check(page)
        # What was written is there after a look elsewhere.
        await page.reload()
        await expect(page.get_by_label("Text of turn 2")).to_have_value("two")
        await page.get_by_role("button", name="Delete Two").click()
        await expect(page.locator("#empty")).to_be_visible()
        assert wrong == []


async def test_the_page_says_what_is_wrong_and_fits_a_phone(
    tmp_path: Path, server: SpeechServer
) -> None:
    settings = {"openai_url": server.url, "openai_key": "k", "turn_characters": 10}
    async with a_scene(tmp_path, **settings) as (_, address), a_browser() as browser:
        page = await a_page(browser, address, width=PHONE, scheme="dark")
        await page.click("#add-turn")
        await page.get_by_label("Text of turn 3").fill("too many words for one turn")
        await page.click("#speak")
        await expect(page.locator("#note")).to_contain_text("at most 10 are taken")
        await check(page)
        server.answers = [(401, {}, b"")]
        await page.select_option("#provider", "openai")
        for number in (1, 2, 3):
            await page.get_by_label(f"Text of turn {number}").fill("word")
        await page.click("#speak")
        await expect(page.locator("#jobs .failed")).to_be_visible()
        await expect(page.locator("#jobs .bad")).to_contain_text("HEADRACE_SPEECH_OPENAI_KEY")
        await page.get_by_role("button", name="Try Dialogue again").click()
        await expect(page.locator("#jobs .completed")).to_be_visible()
        await check(page)
