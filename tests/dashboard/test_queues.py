"""Queues: how deep they are and why, who paused them, and pausing them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headrace.model.outcome import Reserved
from headrace.monitor.series.records import DEPTHS, MINUTE, Counts, Depth, label
from headrace.telemetry import Telemetry
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.visits import audited, visitor, words
from tests.server.conftest import a_key
from tests.support.verbs import a_worker, claim, enqueue, settle

HOSTILE = "<script>alert(1)</script> \u202e \U0001f600"
REASON = "<script>alert(1)</script> \U0001f600"


async def a_scene(site: Site) -> None:
    """Two queues: one with lanes and a worker, and one that is paused and that nobody serves."""
    engine = site.app.engine
    worker = await a_worker(engine, "w1", queues=("mail",), tasks=("send",))
    for lane in ("a", "a", f"{HOSTILE}/b?x#y"):
        await enqueue(engine, queue="mail", task="send", lane=lane)
    await claim(engine, worker, 1, queues=["mail"])
    for _ in range(3):
        await enqueue(engine, queue="scans", task="scan")
    await enqueue(engine, queue="scans", task="read", delay=600)
    await site.app.pause("scans", reason=REASON, duration=1_800, by="ada")


async def counted(site: Site, minutes: int = 10) -> None:
    """What a server and a worker have written: 100 done a minute, and 40 fewer left after each."""
    # To a second when the minute before is over for all who write, whatever the second is now.
    clock = site.app.clock
    clock.advance(MINUTE.seconds - clock.now() % MINUTE.seconds + 15)
    now = MINUTE.start(clock.now())
    for back in range(1, minutes + 1):
        done = Telemetry()
        done.of("send", "mail").completed = 100
        depth = [500 + 40 * back, 0, 0, 0]
        counts = Counts(attempts=done, samples=1, depths={"mail": Depth(depth, depth)})
        # In the place of what the running server has sampled in that minute, or will.
        key = f"{label(now - back * MINUTE.seconds)}/{DEPTHS}"
        await site.app.engine.record_put(MINUTE.kind, key, counts.encode())


async def test_the_list_says_how_deep_queues_are_and_who_paused_them(site: Site) -> None:
    await counted(site)
    await a_scene(site)
    async with visitor(site) as who:
        page = await who.sees("/queues", "scans paused by ada")
        said = words(page)
        assert REASON in said
        assert "<script>alert(1)" not in page
        mail = words(page.partition('id="queue-mail"')[2].partition("</tr>")[0])
        # Ready, waiting, scheduled, running; in and out a minute; when the two that wait are done.
        assert mail.startswith("data-row> mail open 1 1 0 1")
        assert " 60 100 about 3 s " in mail
        assert "Pending jobs of mail in the last hour" in mail
        assert "There are no queues" not in said


async def test_an_empty_list_says_what_to_do(site: Site) -> None:
    async with visitor(site) as who:
        assert "There are no queues yet." in await who.words("/queues")


async def test_a_queue_says_what_waits_for_what(site: Site) -> None:
    await counted(site)
    await a_scene(site)
    await enqueue(site.app.engine, queue="mail", task="other")
    async with visitor(site) as who:
        page = await who.sees("/queues/mail", "w1 0 of 10")
        said = words(page)
        # By task, with lanes and workers.
        assert "send 3" in said
        assert "other 1" in said
        assert "a 1 1 of 1" in said
        assert "Attempts per minute, by how they ended" in said
        assert "Jobs in the queue, by state" in said
        assert "/ui/jobs?queue=mail&amp;status=failed&amp;status=timeout" in page
        # Names of lanes are one parameter, whatever is in them.
        assert "%3Cscript%3Ealert%281%29%3C%2Fscript%3E+%E2%80%AE+%F0%9F%98%80%2Fb%3Fx%23y" in page
        day = await who.words("/queues/mail?step=hour")
        assert "Attempts per hour, by how they ended" in day
        assert "step must be one of" in words(await who.get("/queues/mail?step=year", 422))


async def test_a_queue_says_what_is_wrong_with_it(site: Site) -> None:
    await a_scene(site)
    async with visitor(site) as who:
        wrong = "Queue 'scans' has 3 pending jobs, but no worker serves it."
        said = words(await who.sees("/queues/scans", wrong))
        assert "is paused by ada since" in said
        assert "headrace worker --queues scans" in said
        assert "scans" not in (await who.words("/queues/mail")).replace("headrace queues", "")
        assert "No job has been put in this queue yet." in await who.words("/queues/new")
        assert "is not valid" in words(await who.get("/queues/foo%2Fbar.baz%3Fx%23y", 422))


async def test_tasks_that_no_worker_knows_are_named(site: Site) -> None:
    engine = site.app.engine
    await a_worker(engine, "w1", tasks=("send",))
    await enqueue(engine, queue="mail", task="report")
    [job] = await claim(engine, await a_worker(engine, "w2", tasks=("send",)))
    await settle(engine, job, Reserved())
    async with visitor(site) as who:
        await who.sees("/queues/mail", "1 ready job of task report: no worker knows it.")


async def test_pausing_and_resuming(make_site: MakeSite) -> None:
    site = await make_site()
    await a_scene(site)
    async with visitor(site, await a_key(site.app)) as who:
        form = {"reason": " provider is down ", "for": "1800"}
        assert "Queue mail is paused until" in await who.send("/queues/mail/pause", 303, **form)
        # At once, though what is shown is usually up to a second old.
        said = await who.words("/queues/mail")
        assert "paused by test admin" in said
        assert ": provider is down, until" in said
        [mail] = [each for each in await site.app.queues() if each.name == "mail"]
        assert mail.paused_until is not None
        left = mail.paused_until - site.app.clock.utcnow()
        assert timedelta(minutes=28) < left <= timedelta(minutes=30)
        assert "Queue mail is open." in await who.send("/queues/mail/resume")
        assert "paused by" not in await who.words("/queues/mail")
        await who.send("/queues/mail/pause")
        assert "until somebody resumes it" in await who.words("/queues/mail")
    done = [each for each in await audited(site) if each[1].startswith("queue.")]
    assert [each[1:] for each in done] == [
        ("queue.pause", "mail"), ("queue.resume", "mail"), ("queue.pause", "mail"),
    ]  # fmt: skip
    assert {each[0] for each in done} == {"test admin"}


async def test_a_pause_until_a_time_is_meant_on_the_clocks_of_its_zone(site: Site) -> None:
    wall = (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0, tzinfo=None)
    async with visitor(site) as who:
        form = {"for": "until", "until": wall.isoformat(), "zone": "Asia/Seoul"}
        await who.send("/queues/mail/pause", 303, **form)
        [mail] = await site.app.queues()
        assert mail.paused_until == wall.replace(tzinfo=ZoneInfo("Asia/Seoul"))
        for wrong, field in (
            ({"for": "until", "until": ""}, "until"),
            ({"for": "until", "until": "soon"}, "until"),
            ({"for": "until", "until": wall.isoformat(), "zone": "Mars/Base"}, "zone"),
            ({"for": "9"}, "for"),
            ({"for": "until", "until": "2020-01-01T00:00"}, "has passed"),
            ({"reason": "x" * 1_001}, "Reason must be one line"),
        ):
            assert field in words(await who.send("/queues/mail/pause", 422, **wrong))


async def test_a_key_for_one_queue_sees_no_trace_of_others(make_site: MakeSite) -> None:
    site = await make_site()
    await counted(site)
    await a_scene(site)
    await a_worker(site.app.engine, "w2", queues=("scans", "mail"))
    key = await a_key(site.app, "admin", queues=["mail"])
    async with visitor(site, key) as who:
        for path in ("/queues", "/queues/mail"):
            page = await who.sees(path, "w2" if path == "/queues/mail" else "mail open 1")
            assert "scan" not in page
        assert "may not use queue" in await who.get("/queues/scans", 403)
        await who.send("/queues/scans/resume", 403)
        await who.send("/queues/scans/pause", 403)
        assert "is paused" in await who.send("/queues/mail/pause")
    assert {each.name: each.paused for each in await site.app.queues()} == {
        "mail": True,
        "scans": True,
    }


@pytest.mark.parametrize("scope", ["read", "write"])
async def test_without_the_scope_there_is_no_form(make_site: MakeSite, scope: str) -> None:
    site = await make_site()
    await a_scene(site)
    async with visitor(site, await a_key(site.app, scope)) as who:
        for path in ("/queues", "/queues/mail", "/queues/scans"):
            page = await who.get(path)
            assert "/pause" not in page
            assert "/resume" not in page
        await who.send("/queues/mail/pause", 403)
    assert {each.name for each in await site.app.queues() if each.paused} == {"scans"}


async def test_in_a_browser(site: Site, windows: Windows) -> None:
    await counted(site)
    await a_scene(site)
    page = await windows.open(f"{site.base}/queues", timezone_id="Asia/Seoul")
    await page.wait_for_selector("#queue-scans [data-status=paused]")
    await page.goto(f"{site.base}/queues/mail")
    # By keyboard alone: into the dialog, and through it.
    await is_live(page)
    await page.locator("#change summary").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("dialog[open]")
    assert await page.input_value("dialog [name=zone]") == "Asia/Seoul"
    await page.focus("dialog [name=reason]")
    await page.keyboard.type("provider is down")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said >> text=Queue mail is paused")
    assert "provider is down" in await page.inner_text("#live-queue")
    # Somebody else resumes it: the page follows.
    await site.app.resume("mail")
    await page.wait_for_selector("#live-queue [data-status=ok]")
