"""A bundle is declared, found, loaded with its settings, and refused with a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
import headrace.bundles
from headrace.bundles.names import RESERVED
from headrace.bundles.settings import load_settings
from headrace.cli.main import COMMANDS
from headrace.server.app import ROUTES
from tests.bundles.conftest import install
from tests.support.processes import until

pytestmark = pytest.mark.usefixtures("forget")

MEMORY = "sqlite:///:memory:"


class Options(msgspec.Struct):
    """The settings of a bundle."""

    size: int = 3
    names: tuple[str, ...] = ()
    folder: Path = Path("here")
    api_key: str | None = None


def bundle_with(register: Callable[..., None] | None = None, **more: Any) -> headrace.Bundle:
    return headrace.Bundle("demo", summary="A demo", register=register, **more)


def test_no_bundle_may_have_a_name_of_ours() -> None:
    segments = {str(getattr(route, "path", "/")).split("/")[1] for route in ROUTES}
    prefixes = {field.name.partition("_")[0] for field in msgspec.structs.fields(headrace.Settings)}
    wanted = {each for each in segments if each and "{" not in each and "." not in each}
    assert wanted | set(COMMANDS) | prefixes | {"test"} <= RESERVED


@pytest.mark.parametrize(
    "name", ["Ingest", "1st", "a b", "", "../jobs", "jobs", "worker", "x" * 41]
)
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(headrace.InvalidName, match="cannot be called"):
        headrace.Bundle(name, summary="")


async def test_a_bundle_works_beside_the_tasks_of_an_app() -> None:
    def register(app: headrace.App, setup: headrace.bundles.Setup) -> None:
        @app.task("demo.add")
        async def add(a: int) -> int:
            return a + int(setup.settings.size)

    async with headrace.App(MEMORY) as app:

        @app.task
        async def own() -> str:
            return "own"

        setup = app.load_bundle(bundle_with(register, settings=Options), size=5)
        assert setup.app is app
        mine, theirs = await own.enqueue(), await app.enqueue("demo.add", {"a": 1})
        await headrace.JobOrchestrator(app).run_until_idle()
        assert [await app.result(job.id, 5) for job in (mine, theirs)] == ["own", 6]


def test_settings_come_from_code_the_environment_and_the_file(tmp_path: Path) -> None:
    bundle = bundle_with(settings=Options)
    (tmp_path / "headrace.toml").write_text('[demo]\nsize = 4\nnames = ["x"]\nfolder = "f"\n')
    environment = {"HEADRACE_DEMO_NAMES": "a, b", "HEADRACE_DEMO_API_KEY": ""}
    got, _ = load_settings(bundle, {"size": 9}, environment=environment, folder=tmp_path)
    assert got == Options(size=9, names=("a", "b"), folder=Path("f"))
    assert load_settings(bundle, environment={}, folder=tmp_path)[0].size == 4


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HEADRACE_DEMO_SIEZ", "3", 'did you mean "HEADRACE_DEMO_SIZE"'),
        ("HEADRACE_DEMO_SIZE", "many", "HEADRACE_DEMO_SIZE has the value 'many'"),
        ("HEADRACE_DEMO_URL", "sqlite:///x.db", "HEADRACE_DEMO_URL"),
    ],
)
def test_a_bad_variable_of_a_bundle_is_refused(
    variable: str, value: str, said: str, tmp_path: Path
) -> None:
    bundle = bundle_with(settings=Options)
    with pytest.raises(headrace.InvalidSetting, match=said):
        load_settings(bundle, environment={variable: value}, folder=tmp_path)


def test_a_bad_line_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("[demo]\nsizes = 4\n")
    with pytest.raises(headrace.InvalidSetting, match='did you mean "size"'):
        load_settings(bundle_with(settings=Options), environment={}, folder=tmp_path)


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    class Secretive(msgspec.Struct):
        api_key: int = 0

    bundle = bundle_with(settings=Secretive)
    with pytest.raises(headrace.InvalidSetting) as caught:
        load_settings(bundle, environment={"HEADRACE_DEMO_API_KEY": "hush"}, folder=tmp_path)
    assert "hush" not in str(caught.value)


def test_a_setting_that_has_to_be_set_says_how(tmp_path: Path) -> None:
    class Needy(msgspec.Struct):
        voice: str

    with pytest.raises(headrace.InvalidSetting, match="set HEADRACE_DEMO_VOICE"):
        load_settings(bundle_with(settings=Needy), environment={}, folder=tmp_path)


def test_settings_of_a_bundle_are_no_unknown_settings_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_DEMO_SIZE", "8")
    (tmp_path / "headrace.toml").write_text("[demo]\nsize = 4\n")
    with pytest.raises(headrace.InvalidSetting, match="demo"):
        headrace.App(MEMORY)
    bundle = bundle_with(settings=Options)
    assert headrace.App(MEMORY).load_bundle(bundle).settings.size == 8
    monkeypatch.setenv("HEADRACE_DEMONS", "8")
    with pytest.raises(headrace.InvalidSetting, match="HEADRACE_DEMONS"):
        headrace.App(MEMORY)


def test_a_task_name_that_is_taken_is_refused_and_leaves_nothing() -> None:
    def register(app: headrace.App, setup: headrace.bundles.Setup) -> None:
        @app.task("demo.other")
        async def other() -> None: ...

        app.add_schedule("demo.other", "0 3 * * *", name="nightly")

        @app.task("taken")
        async def taken() -> None: ...

    app = headrace.App(MEMORY)

    @app.task("taken")
    async def mine() -> None: ...

    with pytest.raises(headrace.InvalidSetting, match=r'bundle "demo": two tasks are called "take'):
        app.load_bundle(bundle_with(register))
    assert set(app.tasks) == {"taken"}
    assert not app.schedules.declared


def test_two_bundles_of_one_name_are_refused() -> None:
    app = headrace.App(MEMORY)
    app.load_bundle(bundle_with())
    with pytest.raises(headrace.InvalidSetting, match='two bundles are called "demo"'):
        app.load_bundle(bundle_with())


def test_two_packages_with_one_bundle_name_are_refused(shelf: Path) -> None:
    install(shelf.parent, "shelf", "other:bundle", package="headrace-other")
    with pytest.raises(headrace.InvalidSetting, match="two bundles are called"):
        headrace.App(MEMORY, bundles=["shelf"])


def test_an_unknown_bundle_names_the_nearest(shelf: Path) -> None:
    with pytest.raises(headrace.InvalidSetting, match='did you mean "shelf"'):
        headrace.App(MEMORY, bundles=["shelv"])


def test_settings_that_are_called_url_are_refused() -> None:
    class Wrong(msgspec.Struct):
        url: str = ""

    with pytest.raises(headrace.InvalidSetting, match="HEADRACE_DEMO_URL"):
        bundle_with(settings=Wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import a_module_that_is_not_there\n", "a_module_that_is_not_there"),
        ("bundle = 3\n", "is a int, not a headrace.Bundle"),
        ("import headrace\nbundle = headrace.Bundle('other', summary='')\n", 'is called "other"'),
        ("import sys\nsys.exit('no')\n", "SystemExit"),
    ],
)
async def test_a_bundle_that_cannot_be_loaded_is_reported_and_the_rest_goes_on(
    shelf: Path, text: str, said: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (shelf.parent / "headrace_bad.py").write_text(text)
    install(shelf.parent, "bad", "headrace_bad:bundle")
    with caplog.at_level(logging.ERROR):
        app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", bundles=["bad", "shelf"])
    assert 'Bundle "bad" was not loaded' in caplog.text
    assert said in caplog.text
    assert [each.name for each in app.bundles.failures] == ["bad"]
    async with app:
        job = await app.enqueue("shelf.add", {"title": "Emma"})
        await headrace.JobOrchestrator(app).run_until_idle()
        assert await app.result(job.id, 5) == "hello Emma"


async def test_a_child_process_of_a_worker_loads_the_bundle(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.cli.bundles import app_without_tasks

    await app.close()
    monkeypatch.setattr(app_without_tasks, "app", app)
    job = await app.enqueue("shelf.weigh", {"title": "Emma"})
    orchestrator = headrace.JobOrchestrator(app)
    await orchestrator.start()

    async def done() -> bool:
        return (await app.get(job.id)).status.final

    await until(done, "the job", 30)
    await orchestrator.stop()
    length, greeting, _ = await app.result(job.id, 1)
    assert (length, greeting) == (4, "hello")
