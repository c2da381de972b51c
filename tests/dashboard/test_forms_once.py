"""A form that is sent twice, by a person, a script or the network, is done once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from headrace.server.dashboard.session import sent_forms
from tests.dashboard.conftest import Site, Windows, is_live
from tests.dashboard.test_session import client, token
from tests.dashboard.trial import TRIAL
from tests.support.processes import until

ASK, DO = "details.confirm summary", "dialog button.primary"
MOST_ROUNDS = 20


@asynccontextmanager
async def forgetful(target: str, drops: list[bytes]) -> AsyncIterator[str]:
    """A proxy that passes one form on and hangs up before its answer, on a connection in use:
    browsers then send the form again by themselves.
    """
    at = urlsplit(target)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, out = await asyncio.open_connection(at.hostname, at.port)
        answered = dropping = False

        async def back() -> None:
            nonlocal answered
            while chunk := await inner.read(65_536):
                if dropping:
                    writer.transport.abort()
                    return
                answered = True
                writer.write(chunk)
            writer.close()

        answers = asyncio.create_task(back())
        try:
            while chunk := await reader.read(65_536):
                if chunk.startswith(b"POST ") and answered and not drops:
                    dropping = True
                    drops.append(chunk)
                out.write(chunk)
        except OSError:
            pass
        finally:
            out.close()
            writer.close()
            await asyncio.gather(answers, return_exceptions=True)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_two_presses_are_one(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    await page.click(ASK)
    await page.wait_for_selector(DO)
    await page.evaluate(
        "() => { const form = document.querySelector('dialog form');"
        " form.requestSubmit(); form.requestSubmit(); form.requestSubmit(); }"
    )
    await page.wait_for_selector(".said")
    assert len(TRIAL.done) == 1
    # Whoever comes back may do it again.
    await is_live(page)
    await page.click(ASK)
    await page.click(DO)
    await until(lambda: len(TRIAL.done) == 2, "the second one")


async def test_what_the_network_sends_again_is_done_once(site: Site, windows: Windows) -> None:
    drops: list[bytes] = []
    async with forgetful(site.url, drops) as url:
        page = await windows.open(f"{url}/ui/trial")
        done = 0
        # At times the browser has taken a connection that was never used, and would not ask again.
        while not drops:
            assert done < MOST_ROUNDS, "the browser never sent a form on a connection in use"
            await is_live(page)
            # The stream holds the connection that the page came by: leave another for the form.
            await page.evaluate("async () => (await fetch('/ui/session/state')).text()")
            await page.click(ASK)
            await page.click(DO)
            await page.wait_for_selector(".said")
            done += 1
            assert len(TRIAL.done) == done
        await page.close()


async def test_the_same_form_waits_for_the_first_and_has_its_result(site: Site) -> None:
    async with client(site) as browser:
        form = {"token": await token(browser), "back": "/trial", "once": "1-2-3-4"}
        answers = await asyncio.gather(
            *(browser.post("/ui/trial/act", data=form) for _ in range(5)),
        )
        assert {each.status_code for each in answers} == {303}
        assert len(TRIAL.done) == 1
        assert (await browser.post("/ui/trial/act", data=form)).status_code == 303
        assert len(TRIAL.done) == 1
        # Another form, the same with other fields, and one without a name are done.
        for changed in ({"once": "5"}, {"back": "/trial?status=x"}, {"once": ""}):
            await browser.post("/ui/trial/act", data=form | changed)
        assert len(TRIAL.done) == 4


async def test_what_was_refused_may_be_tried_again(site: Site) -> None:
    async with client(site) as browser:
        form = {"token": await token(browser), "once": "1", "name": ""}
        for _ in range(2):
            assert (await browser.post("/ui/keys", data=form)).status_code == 422
        form["name"] = "ops"
        assert (await browser.post("/ui/keys", data=form)).status_code == 200


async def test_forms_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = sent_forms.SentForms(None)  # type: ignore[arg-type]
    results = iter(range(10))

    async def act() -> int:
        return next(results)

    async def send(key: str) -> object:
        return await forms.once(key, act)  # type: ignore[arg-type]

    assert [await send("a"), await send("a"), await send("b")] == [0, 0, 1]
    monkeypatch.setattr(sent_forms, "MOST", 1)
    assert [await send("c"), await send("a"), await send("c")] == [2, 3, 2]
    monkeypatch.setattr(sent_forms, "MOST", 1_000)
    monkeypatch.setattr(sent_forms, "SECONDS", 0.0)
    assert [await send("d"), await send("d")] == [4, 5]
