"""Lanes: which are blocked, by which job, and how to free them."""

from __future__ import annotations

from headrace.monitor.findings.lanes import LONG_SECONDS
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.visits import audited, visitor, words
from tests.server.conftest import a_key
from tests.support.verbs import a_worker, claim, enqueue, the_job

HOSTILE = "<script>alert(1)</script>\u202e\U0001f600/b?x#y"


async def a_blocked_lane(site: Site, queue: str = "mail", lane: str = HOSTILE) -> str:
    """A lane that one job has held for long, with two that wait. Return the holder."""
    engine = site.app.engine
    holder = await enqueue(engine, queue=queue, task="send", lane=lane)
    for _ in range(2):
        await enqueue(engine, queue=queue, task="send", lane=lane)
    worker = await a_worker(engine, f"worker-{queue}")
    [job] = await claim(engine, worker, queues=[queue])
    assert job.id == holder
    return holder


async def test_a_lane_is_blocked_once_its_holder_has_run_long(site: Site) -> None:
    holder = await a_blocked_lane(site)
    async with visitor(site) as who:
        page = await who.get("/lanes")
        assert HOSTILE in words(page)
        assert "<script>alert" not in page
        assert f"/ui/jobs/{holder}" in page
        assert "cancel-holder" not in page
        assert "No lane is blocked." in await who.words("/lanes?blocked=yes")
        site.app.clock.advance(LONG_SECONDS + 1)
        for path in ("/lanes", "/lanes?blocked=yes", "/lanes?blocked=yes&queue=mail"):
            page = await who.get(path)
            assert f"{HOSTILE} blocked mail 2" in words(page)
            assert f"headrace jobs cancel {holder}" in page
        await enqueue(site.app.engine, queue="mail", lane="free")
        assert "free" not in words(await who.get("/lanes?blocked=yes")).replace("freed", "")


async def test_cancelling_the_holder(make_site: MakeSite) -> None:
    site = await make_site()
    holder = await a_blocked_lane(site)
    other = await a_blocked_lane(site, "scans", "x")
    site.app.clock.advance(LONG_SECONDS + 1)
    reader, writer = await a_key(site.app, "read"), await a_key(site.app, "write", queues=["mail"])
    async with visitor(site, reader) as who:
        page = await who.get("/lanes")
        assert "blocked" in page
        assert "cancel-holder" not in page
        await who.send("/lanes/cancel-holder", 403, id=holder)
    async with visitor(site, writer) as who:
        page = await who.get("/lanes")
        assert "cancel-holder" in page
        assert "scans" not in page
        # A job of another queue does not exist for it.
        await who.send("/lanes/cancel-holder", 404, id=other)
        assert not (await the_job(site.app.engine, other)).cancel_requested
        assert "was asked to stop" in await who.send("/lanes/cancel-holder", id=holder)
        assert (await the_job(site.app.engine, holder)).cancel_requested
        await who.send("/lanes/cancel-holder", 422, id="x")
    assert ("test write", "job.cancel", holder) in await audited(site)


async def test_in_a_browser(site: Site, windows: Windows) -> None:
    holder = await a_blocked_lane(site)
    site.app.clock.advance(LONG_SECONDS + 1)
    page = await windows.open(f"{site.base}/lanes?blocked=yes")
    await is_live(page)
    await page.locator("#live-lanes summary").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("dialog[open]")
    await page.focus("dialog button.danger")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said >> text=was asked to stop")
    assert page.url.endswith("/lanes?blocked=yes")
    assert (await the_job(site.app.engine, holder)).cancel_requested
