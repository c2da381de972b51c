"""Schedules: in words and in their own zone, and all that can be done to them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.dispatchers.cron.dispatcher import CronDispatcher
from tests.dashboard.conftest import MakeSite, Site, Windows, has_keys, is_live
from tests.dashboard.visits import audited, visitor, words
from tests.server.conftest import a_key, run_jobs

HOSTILE = "<script>alert(1)</script>\u202e\U0001f600"
NIGHTLY = {
    "name": "nightly", "expression": "30 2 * * *", "tz": "Europe/Berlin", "task": "add",
    "params": '{"a": 1, "b": 2}', "missed": "latest", "allow_overlap": "yes", "enabled": "yes",
}  # fmt: skip


async def a_schedule(site: Site, name: str = "nightly", **fields: Any) -> None:
    """A schedule at 02:30 in Berlin."""
    given: dict[str, Any] = {"params": {"a": 1, "b": 2}, "tz": "Europe/Berlin", **fields}
    task = given.pop("task", "add")
    await site.app.put_schedule(name, given.pop("expression", "30 2 * * *"), task, **given)


def to(site: Site, moment: datetime) -> None:
    """Let time pass until a moment."""
    site.app.clock.advance((moment - site.app.clock.utcnow()).total_seconds())


async def test_the_list_says_when_they_fire_and_how_it_went(site: Site) -> None:
    await a_schedule(site)
    await a_schedule(site, "broken-one", task="broken", params={}, expression="*/5 * * * *")
    for _ in range(3):
        await site.app.trigger_schedule("nightly")
    await site.app.trigger_schedule("broken-one")
    await run_jobs(site.app)
    await site.app.enable_schedule("broken-one", False)
    async with visitor(site) as who:
        page = await who.get("/schedules")
        said = words(page)
        assert "nightly enabled at 02:30 every day Europe/Berlin add" in said
        assert "broken-one disabled every 5 minutes" in said
        nightly = page.partition('id="schedule-nightly"')[2].partition("</tr>")[0]
        assert nightly.count('class="mark completed"') == 3
        assert "completed, triggered by hand" in nightly
        assert 'class="mark failed"' in page


async def test_an_empty_list_says_what_to_do(site: Site) -> None:
    async with visitor(site) as who:
        assert "There are no schedules yet." in await who.words("/schedules")
        assert 'No schedule is called "none"' in words(await who.get("/schedules/none", 404))


async def test_a_long_list_has_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.server.dashboard.pages.schedules.MOST", 2)
    for name in ("a", "b", "c", "d", "e"):
        await a_schedule(site, name)
        await site.app.trigger_schedule(name)
    found: list[str] = []
    async with visitor(site) as who:
        path: str | None = "/schedules"
        while path is not None:
            page = await who.get(path)
            found += re.findall(r'id="schedule-(\w)"', page)
            # Each with its own runs, from whatever name the page begins.
            assert page.count('class="mark pending"') == page.count('id="schedule-')
            assert "none yet" not in page
            after = re.search(r'data-next="/ui(/schedules\?cursor=\w)"', page)
            path = after[1] if after else None
    assert found == ["a", "b", "c", "d", "e"]


async def test_the_next_five_are_right_over_a_change_of_the_clocks(site: Site) -> None:
    await a_schedule(site)
    to(site, datetime(2027, 3, 26, 12, tzinfo=UTC))
    async with visitor(site) as who:
        page = await who.get("/schedules/nightly")
        said = words(page)
        # On the 28th there is no 02:30 in Berlin: it fires at the first moment after the jump.
        assert (
            "Sat 2027-03-27 02:30 CET 2027-03-27 01:30:00 UTC in 13 h "
            "Sun 2027-03-28 03:00 CEST 2027-03-28 01:00:00 UTC in 1 d "
            "Mon 2027-03-29 02:30 CEST 2027-03-29 00:30:00 UTC in 2 d "
            "Tue 2027-03-30 02:30 CEST 2027-03-30 00:30:00 UTC in 3 d "
            "Wed 2027-03-31 02:30 CEST 2027-03-31 00:30:00 UTC in 4 d"
        ) in said
        # The script goes on counting from these.
        assert re.findall(r'<time datetime="(2027-03-\S+)" data-relative>', page) == [
            "2027-03-27T01:30:00.000Z",
            "2027-03-28T01:00:00.000Z",
            "2027-03-29T00:30:00.000Z",
            "2027-03-30T00:30:00.000Z",
            "2027-03-31T00:30:00.000Z",
        ]
        assert "at 02:30 every day , in Europe/Berlin" in said
        tried = await who.words("/schedule-preview?expression=30+2+*+*+*&tz=Europe/Berlin")
        assert "Sun 2027-03-28 03:00 CEST 2027-03-28 01:00:00 UTC" in tried
        assert "Mon 2027-03-29 02:30 CEST 2027-03-29 00:30:00 UTC" in tried


async def test_times_change_with_the_zone_and_with_the_season(site: Site, windows: Windows) -> None:
    """Each time is shown with the offset that counts at that time, not with today's."""
    await a_schedule(site)
    to(site, datetime(2027, 3, 26, 12, tzinfo=UTC))
    page = await windows.open(f"{site.base}/schedules/nightly", timezone_id="Europe/Lisbon")
    await is_live(page)
    times = page.locator("#live-times [data-label='For you']")

    async def shown() -> list[str]:
        return (await times.all_inner_texts())[:3]

    # Clocks go forward in Lisbon and in Berlin at the same moment: 01:00 UTC on the 28th.
    told = [each.rpartition(" ") for each in await shown()]
    assert [each[0] for each in told] == [
        "2027-03-27 01:30:00",
        "2027-03-28 02:00:00",
        "2027-03-29 01:30:00",
    ]
    # What browsers call the zone differs, but it is another one after the change.
    winter, *summer = [each[2] for each in told]
    assert winter in {"GMT", "GMT+0", "WET"}
    assert set(summer) in ({"GMT+1"}, {"WEST"})
    assert await page.inner_text("#zone-name") == "Times are in Europe/Lisbon"
    await page.evaluate("window.stays = true")
    await page.click("#zone-switch")
    assert await shown() == [
        "2027-03-27 01:30:00 UTC",
        "2027-03-28 01:00:00 UTC",
        "2027-03-29 00:30:00 UTC",
    ]
    assert await page.inner_text("#zone-name") == "Times are in UTC"
    assert await page.evaluate("window.stays"), "it was loaded again"
    # What the schedule's own zone says stays.
    first = page.locator("#live-times [data-label='There']").first
    assert await first.inner_text() == "Sat 2027-03-27 02:30 CET"


async def test_a_schedule_tells_what_it_made_and_what_it_missed(site: Site) -> None:
    await a_schedule(site, expression="0 * * * *", missed="skip", tz="UTC")
    for _ in range(21):
        await site.app.trigger_schedule("nightly")
    site.app.clock.advance(3 * 3_600)
    async with visitor(site) as who:
        assert "late It fires every hour" in await who.words("/schedules/nightly")
        await CronDispatcher(site.app).tick()
        page = await who.get("/schedules/nightly")
    assert "no dispatcher ran 3" in words(page)
    assert "enabled It fires every hour" in words(page)
    # The last twenty, each with a link to its job.
    assert len(re.findall(r'<a href="/ui/jobs/[0-9a-f-]{36}" aria-label="pending, ', page)) == 20


async def test_hidden_arguments_are_not_shown_and_stay_as_they_are(site: Site) -> None:
    await a_schedule(site, task="broken", params={"password": "hunter22"})
    typed = {**NIGHTLY, "task": "broken", "exists": "yes", "expression": "0 4 * * *"}
    async with visitor(site) as who:
        for path in ("/schedules/nightly", "/schedule-form?name=nightly", "/schedules"):
            assert "hunter22" not in await who.get(path)
        form = await who.get("/schedule-form?name=nightly")
        assert "[redacted]" in form
        await who.send("/schedule-form", 303, **{**typed, "params": '{"password": "[redacted]"}'})
        found = await site.app.get_schedule("nightly")
        assert (found.expression, found.params) == ("0 4 * * *", {"password": "hunter22"})
        # Another task would be given what nobody may see.
        other = {**typed, "task": "speak", "params": '{"user_id": "x", "text": "[redacted]"}'}
        assert "write the value itself" in await who.send("/schedule-form", 422, **other)
        assert (await site.app.get_schedule("nightly")).task == "broken"


async def test_adding_one(make_site: MakeSite) -> None:
    site = await make_site()
    async with visitor(site, await a_key(site.app)) as who:
        said = words(await who.send("/schedule-form", 303, **NIGHTLY))
        assert "Schedule nightly is added." in said
        assert "Schedule nightly" in said
        found = await site.app.get_schedule("nightly")
        assert (found.words, found.tz, found.params) == (
            "at 02:30 every day", "Europe/Berlin", {"a": 1, "b": 2},
        )  # fmt: skip
        assert found.origin == "api"
        again = await who.send("/schedule-form", 422, **NIGHTLY)
        assert "exists already" in again
        changed = {
            **NIGHTLY,
            "exists": "yes",
            "allow_overlap": "no",
            "missed": "all",
            "enabled": "no",
        }
        assert "Schedule nightly is changed." in await who.send("/schedule-form", 303, **changed)
        found = await site.app.get_schedule("nightly")
        assert (found.allow_overlap, found.missed, found.enabled) == (False, "all", False)
    done = [each for each in await audited(site) if each[1] == "schedule.put"]
    assert done == [("test admin", "schedule.put", "nightly")] * 2


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "a b", "is not valid"),
        ("expression", "99 * * * *", "not valid"),
        ("expression", "0 0 31 2 *", "not valid"),
        ("expression", "* * * * * *", "more often than"),
        ("tz", "Europe/Berlni", "did you mean &#34;Europe/Berlin&#34;"),
        ("task", HOSTILE, "task"),
        ("params", '{"a": 1,', "JSON"),
        ("params", "[1]", "JSON object"),
        ("params", '{"a": "x", "b": 2}', "a"),
        ("params", '{"a": 1, "b": 2, "c": 3}', "c"),
        ("missed", "never", "Choose one of"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    site: Site, field: str, value: str, said: str
) -> None:
    typed = {**NIGHTLY, field: value}
    async with visitor(site) as who:
        page = await who.send("/schedule-form", 422, **typed)
    told = re.search(rf'id="wrong-{field}">(.*?)</span>', page, re.DOTALL)
    assert told is not None, page
    assert said in told[1]
    assert f'aria-describedby="wrong-{field}"' in page
    assert page.count('class="wrong"') == 1
    for name in ("name", "expression", "tz", "task"):
        if name != field:
            assert f'value="{typed[name]}"' in page
    assert "<script>alert" not in page
    assert list(await site.app.list_schedules()) == []


async def test_a_preview_stores_nothing_and_puts_no_argument_into_an_address(site: Site) -> None:
    async with visitor(site) as who:
        page = await who.send("/schedule-form", 200, **NIGHTLY, preview="yes")
        assert "at 02:30 every day" in page
        assert 'value="nightly"' in page
        assert list(await site.app.list_schedules()) == []
        wrong = await who.words("/schedule-preview?expression=61+*+*+*+*")
        assert "61" in wrong
        await who.get("/schedule-preview?params=1", 422)
        names = re.findall(r'name="(\w+)"[^>]*data-previewed', await who.get("/schedule-form"))
        assert names == ["expression", "tz"]


async def test_running_enabling_and_removing(make_site: MakeSite) -> None:
    site = await make_site()
    await a_schedule(site, allow_overlap=False)
    async with visitor(site, await a_key(site.app)) as who:
        assert "is enqueued" in await who.send("/schedules/nightly/trigger")
        refused = words(await who.send("/schedules/nightly/trigger", 409))
        assert "allows no overlap" in refused
        assert "is enqueued" in await who.send("/schedules/nightly/trigger", force="yes")
        assert len((await site.app.get_schedule("nightly")).last_runs) == 2
        await who.send("/schedules/nightly/disable")
        assert not (await site.app.get_schedule("nightly")).enabled
        assert "None: it is disabled." in await who.words("/schedules/nightly")
        await who.send("/schedules/nightly/enable")
        assert (await site.app.get_schedule("nightly")).enabled
        gone = await who.send("/schedules/nightly/remove")
        assert "There are no schedules yet." in gone
        await who.send("/schedules/nightly/remove", 404)
        await who.get("/schedules/nightly", 404)
        await who.get("/schedules/foo%2Fbar.baz%3Fx%23y", 422)
    done = [each[1] for each in await audited(site) if each[1].startswith("schedule.")]
    assert sorted(done) == [
        "schedule.disable", "schedule.enable", "schedule.remove", "schedule.trigger",
        "schedule.trigger",
    ]  # fmt: skip


@pytest.mark.parametrize("scope", ["read", "write"])
async def test_without_the_scope_there_is_no_form(make_site: MakeSite, scope: str) -> None:
    site = await make_site()
    await a_schedule(site)
    async with visitor(site, await a_key(site.app, scope)) as who:
        for path in ("/schedules", "/schedules/nightly"):
            page = await who.get(path)
            # That to sign out is the only one.
            assert page.count('method="post"') == page.count("/session/end") == 1
            assert "schedule-form" not in page
        await who.get("/schedule-form", 403)
        await who.send("/schedule-form", 403, **NIGHTLY)
        for verb in ("trigger", "enable", "disable", "remove"):
            await who.send(f"/schedules/nightly/{verb}", 403)


async def test_a_key_for_one_queue_sees_none(make_site: MakeSite) -> None:
    site = await make_site()
    await a_schedule(site)
    async with visitor(site, await a_key(site.app, "admin", queues=["mail"])) as who:
        for path in ("/schedules", "/schedules/nightly", "/schedule-form?name=nightly"):
            assert "Europe/Berlin" not in await who.get(path, 403)
        for verb in ("trigger", "enable", "disable", "remove"):
            await who.send(f"/schedules/nightly/{verb}", 403)
        await who.send("/schedule-form", 403, **NIGHTLY)


async def test_in_a_browser(site: Site, windows: Windows) -> None:
    await a_schedule(site, "weekly", expression="0 4 * * 1")
    for _ in range(3):
        await site.app.trigger_schedule("weekly")
    await run_jobs(site.app)
    windows.expected = "status of 422"
    page = await windows.open(f"{site.base}/schedules", timezone_id="Asia/Seoul")
    await is_live(page)
    await page.goto(f"{site.base}/schedules/weekly")
    await is_live(page)
    # Its times are those of the person who looks as well, and of UTC on a key press.
    assert "GMT+9" in await page.inner_text("#live-times tbody td")
    await page.click("#zone-switch")
    assert "UTC" in await page.inner_text("#live-times tbody td")
    # A new one, by keyboard alone.
    await page.goto(f"{site.base}/schedule-form")
    await has_keys(page)
    await page.focus("#name")
    await page.keyboard.type("nightly")
    await page.keyboard.press("Tab")
    await page.keyboard.type("30 2 * * *")
    await page.wait_for_selector("#preview >> text=at 02:30 every day")
    await page.fill("#tz", "Europe/Berlin")
    await page.wait_for_selector("#preview >> text=in Europe/Berlin")
    assert await page.locator("#preview tbody tr").count() == 5
    await page.focus("#task")
    await page.keyboard.type("add")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#wrong-params")
    await page.fill("#params", '{"a": 1, "b": 2}')
    await page.focus("#name")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said >> text=Schedule nightly is added.")
    await is_live(page)
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await page.focus("dialog button.primary")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said >> text=is enqueued")
