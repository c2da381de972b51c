"""Services that share an engine: none removes or changes what another one declares."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.cron.config import CronSettings
from headrace.dispatchers.cron.dispatcher import CronDispatcher, cron_dispatcher
from headrace.errors import InvalidName
from headrace.model.schedules.schedule import KeptSchedule, Schedule

Sync = Callable[..., Awaitable[list[str]]]


def hourly(name: str, task: str = "report") -> Schedule:
    return Schedule(name=name, expression="0 * * * *", task=task)


@pytest.fixture
def sync(app: headrace.App) -> Sync:
    """Start the dispatcher of a service that declares these in code; answers what is there."""

    async def sync(owner: str | None, *names: str, reference: str = "jobs") -> list[str]:
        app.settings = msgspec.structs.replace(app.settings, app=reference, schedules_owner=owner)
        app.schedules.declared = {name: hourly(name) for name in names}
        await CronDispatcher(app).sync()
        return [kept.schedule.name for kept in await app.schedules.records.all()]

    return sync


async def test_two_services_without_a_name_keep_what_the_other_declares(
    sync: Sync, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "headrace.cron")
    assert await sync(None, "of-shop") == ["of-shop"]
    assert await sync(None, "of-bank") == ["of-bank", "of-shop"]
    assert await sync(None, "of-shop") == ["of-bank", "of-shop"]
    assert (
        "Schedule of-shop was declared in code jobs and is not any more, or by another service: it "
        "stays. Remove it: headrace schedules remove of-shop." in caplog.text
    )


async def test_a_service_with_a_name_removes_what_it_does_not_declare_any_more(sync: Sync) -> None:
    assert await sync("shop", "a", "b") == ["a", "b"]
    assert await sync("bank", "c") == ["a", "b", "c"]
    assert await sync(None, "d") == ["a", "b", "c", "d"]
    # Also if the module has another name by now.
    assert await sync("shop", "b", reference="shop.jobs") == ["b", "c", "d"]
    assert await sync("bank") == ["b", "d"]


async def test_a_schedule_of_another_service_is_not_taken_over(
    app: headrace.App, sync: Sync, caplog: pytest.LogCaptureFixture
) -> None:
    await sync("shop", "nightly")
    before = await app.schedules.get("nightly")
    assert (before.owner, before.origin) == ("shop", "code jobs of shop")
    for other in ("bank", None):
        assert await sync(other, "nightly", "own") == ["nightly", "own"]
        assert await app.schedules.get("nightly") == before
        assert 'schedule "nightly" belongs to "shop" (code jobs of shop)' in caplog.text
        caplog.clear()
        await app.schedules.remove("own")


async def test_a_service_that_gets_a_name_keeps_its_schedules(
    app: headrace.App, clock: Clock, sync: Sync
) -> None:
    # As a program before names has stored it.
    old = KeptSchedule(
        schedule=hourly("a"), since=clock.utcnow(), origin="code jobs", declared=hourly("a")
    )
    fields = msgspec.to_builtins(old)
    del fields["owner"]
    await app.engine.record_put("schedule", "a", msgspec.json.encode(fields))
    await app.engine.record_put("schedule", "b", msgspec.json.encode(
        msgspec.structs.replace(old, schedule=hourly("b"), declared=hourly("b"))))  # fmt: skip
    await app.schedules.enable("a", False)
    clock.advance(60)
    # What it does not declare may be another's: it stays.
    assert await sync("shop", "a") == ["a", "b"]
    kept = await app.schedules.get("a")
    assert (kept.owner, kept.schedule.enabled) == ("shop", False)
    assert await sync("shop") == ["b"]


async def test_code_and_file_of_one_service_are_one_owner(
    app: headrace.App, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    app.schedules.declared = {"of-code": hourly("of-code")}

    async def start(text: str) -> list[str]:
        path.write_text(f"dispatcher: {{owner: shop}}\nschedules:\n{text}")
        await cron_dispatcher(app, path).sync()
        return [kept.schedule.name for kept in await app.schedules.records.all()]

    await app.schedules.add(hourly("by-hand"), origin="cli")
    entry = "{task: clean, expression: '@hourly'}"
    assert await start(f"  a: {entry}\n  b: {entry}\n") == ["a", "b", "by-hand", "of-code"]
    # A dispatcher that is not given the file knows nothing of it.
    owned = CronSettings(owner="shop")
    await CronDispatcher(app, settings=owned).sync()
    assert await start(f"  b: {entry}\n") == ["b", "by-hand", "of-code"]
    # What moves from the code to the file goes on.
    app.schedules.declared = {}
    since = (await app.schedules.get("of-code")).since
    assert await start("  of-code: {task: report, expression: '0 * * * *'}\n") == [
        "by-hand",
        "of-code",
    ]
    assert (await app.schedules.get("of-code")).since == since


async def test_the_same_file_name_in_two_folders_is_not_one_service(
    app: headrace.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in (("a", "one"), ("b", "two"), ("a", "one")):
        config = tmp_path / folder / "config"
        config.mkdir(parents=True, exist_ok=True)
        entry = "{task: clean, expression: '@hourly'}"
        (config / "dispatcher.yaml").write_text(f"schedules:\n  {name}: {entry}\n")
        monkeypatch.chdir(tmp_path / folder)
        await cron_dispatcher(app).sync()
    assert [kept.schedule.name for kept in await app.schedules.records.all()] == ["one", "two"]


def test_an_owner_is_a_name() -> None:
    with pytest.raises(InvalidName, match=r"dispatcher\.owner name 'a b' is not valid"):
        CronSettings(owner="a b")


@pytest.mark.parametrize("origin", ["code", "code jobs", "file config/dispatcher.yaml"])
async def test_a_change_by_an_earlier_program_leaves_the_owner(
    app: headrace.App, clock: Clock, sync: Sync, origin: str
) -> None:
    # It keeps the origin, and drops fields that it does not know: `schedules disable` is enough.
    kept = KeptSchedule(
        schedule=hourly("a"), since=clock.utcnow(), origin=f"{origin} of shop", declared=hourly("a")
    )
    fields = msgspec.to_builtins(kept)
    del fields["owner"]
    await app.engine.record_put("schedule", "a", msgspec.json.encode(fields))
    assert await sync("bank", "a") == ["a"]
    assert (await app.schedules.get("a")).owner == "shop"
    # No longer declared by the one whose it is.
    place = origin if origin.startswith("file") else "code jobs"
    await app.schedules.sync([], place, owner="shop")
    assert await app.schedules.records.all() == []


async def test_a_path_with_of_in_it_is_no_owner(app: headrace.App) -> None:
    place = "file list of things.yaml"
    await app.schedules.sync([hourly("a")], place)
    assert (await app.schedules.get("a")).owner is None


@pytest.mark.parametrize("owner", [None, "shop"])
async def test_a_file_that_was_deleted_is_told(
    app: headrace.App, tmp_path: Path, caplog: pytest.LogCaptureFixture, owner: str | None
) -> None:
    caplog.set_level(logging.WARNING, "headrace.cron")
    app.settings = msgspec.structs.replace(app.settings, schedules_owner=owner)
    file = tmp_path / "dispatcher.yaml"
    file.touch()
    await CronDispatcher(app, files={str(file): [hourly("nightly")]}).sync()
    # One that is started without it says nothing while it is there.
    await CronDispatcher(app).sync()
    assert "nightly" not in caplog.text
    file.unlink()
    await CronDispatcher(app).sync()
    assert [kept.schedule.name for kept in await app.schedules.records.all()] == ["nightly"]
    assert f"Schedule nightly was declared in {file}, and there is no such file here" in caplog.text
    assert "headrace schedules remove nightly" in caplog.text
