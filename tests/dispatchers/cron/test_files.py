"""`config/dispatcher.yaml`: what it may say, and errors that name the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.dispatchers.cron.config import CronSettings, DispatcherFile, read_file
from headrace.dispatchers.cron.dispatcher import cron_dispatcher
from headrace.errors import InvalidArguments, InvalidInput, InvalidSetting
from headrace.model.schedules.schedule import Schedule

WHOLE = """\
dispatcher:
  poll_interval_seconds: 30
  max_sleep_seconds: 100
  min_cron_interval_seconds: 10
schedules:
  nightly:
    expression: "0 3 * * *"
    tz: Asia/Seoul
    task: report
    params: {shop: "서울", days: 3}
    allow_overlap: false
    enabled: false
    missed: all
  often: {expression: "* * * * *", task: clean}
"""


def read(tmp_path: Path, text: str) -> DispatcherFile:
    path = tmp_path / "dispatcher.yaml"
    path.write_text(text, encoding="utf-8")
    found = read_file(path)
    assert found is not None
    return found


def test_a_whole_file(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert found.settings == CronSettings(
        poll_interval_seconds=30, max_sleep_seconds=100, min_cron_interval_seconds=10
    )
    nightly, often = found.schedules
    assert nightly == Schedule(
        name="nightly",
        expression="0 3 * * *",
        tz="Asia/Seoul",
        task="report",
        params={"shop": "서울", "days": 3},
        allow_overlap=False,
        enabled=False,
        missed="all",
    )
    assert (often.allow_overlap, often.enabled, often.missed) == (True, True, "latest")
    assert found.at("often").endswith("dispatcher.yaml line 14")


def test_a_file_may_name_the_database_of_the_app(tmp_path: Path) -> None:
    named = WHOLE.replace("dispatcher:\n", "dispatcher:\n  database: default\n")
    assert read(tmp_path, named).settings == read(tmp_path, WHOLE).settings
    with pytest.raises(InvalidSetting, match=r'must be "default".*HEADRACE_URL.*line 2\)'):
        read(tmp_path, named.replace("default", "reports"))


def test_the_defaults_are_those_of_the_specification() -> None:
    settings = CronSettings()
    assert settings.poll_interval_seconds == 60
    assert settings.max_sleep_seconds == 300
    assert settings.min_cron_interval_seconds == 60


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "schedules: {}\n", "dispatcher: {}\n"]
)
def test_an_empty_file_is_fine(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert (found.schedules, found.settings) == ([], CronSettings())


def test_the_usual_file_need_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_file() is None
    with pytest.raises(InvalidInput, match="there is no such file"):
        read_file(Path("config/dispatcher.yaml"))
    with pytest.raises(InvalidInput, match="Is a directory"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# one\ndispatcher:\n  poll_interval_seconds: 0\n",
            "dispatcher.poll_interval_seconds must be at least 1, got 0 (",
        ),
        ("\n\ndispatcher: {max_sleep_seconds: soon}\n", "must be a number, got 'soon' ("),
        (
            "\n\ndispatcher: {max_sleep_seconds: .nan}\n",
            "max_sleep_seconds is .nan, which is no number",
        ),
        (
            "\n\ndispatcher: {max_sleep_seconds: yes}\n",
            "got 'yes'; yes is text in YAML 1.2, only true and false are not (",
        ),
        ("\n\ndispatcher: {max_sleep_seconds: 1e99}\n", "at most 2678400, got 1e+99 ("),
        (
            "\n\ndispatcher: {pol_interval_seconds: 3}\n",
            'has no setting "pol_interval_seconds"; did you mean "poll_interval_seconds"? (',
        ),
        ("\n\nschedule: {}\n", 'has no setting "schedule"; did you mean "schedules"? ('),
        ("\n\nschedules: [a]\n", "schedules must have names with values (name: value), got a list"),
        ("\n\nschedules:\n", "must have names with values (name: value), got nothing ("),
        ("\n\n- a\n", "the file must have names with values (name: value), got a list ("),
        ("a:\n b: [1\nc: 2", "is not valid YAML"),
        ("schedules:\n  a:\n    task: t\n", "schedules.a has no expression ("),
        ("schedules:\n  a:\n    expression: '@daily'\n", "schedules.a has no task ("),
        (
            "schedules:\n  a:\n    expression: 61 * * * *\n    task: t\n",
            "schedules.a.expression has the value '61 * * * *': cron expression",
        ),
        (
            "schedules:\n  a: {task: t}\n  a: {task: t}\n",
            'schedules has "a" twice, first in line 2; keep one',
        ),
        ("schedules:\n  ok: {task: t, expression: '@daily'}\n  3: {task: t}\n", "the name 3 is"),
        ("\n\nschedules: {'a b': {task: t, expression: '@daily'}}\n", "schedule name 'a b'"),
        (
            "schedules:\n  a:\n    tz: Asia/Soul\n    task: t\n    expression: '@daily'\n",
            'did you mean "Asia/Seoul"',
        ),
        (
            "schedules:\n  a:\n    missed: never\n    task: t\n    expression: '@daily'\n",
            "schedules.a.missed has the value 'never'",
        ),
        (
            "schedules:\n  a:\n    params: [1]\n    task: t\n    expression: '@daily'\n",
            "schedules.a.params has the value [1]",
        ),
        (
            "schedules:\n  a:\n    cron: '@daily'\n    task: t\n",
            'schedules.a has no setting "cron"; known: allow_overlap, enabled, expression',
        ),
        ("\n\nschedules: !!python/object/apply:os.system ['ls']\n", "schedules cannot be read"),
        ("\n\ndispatcher: {max_sleep_seconds: !!python/name:os.system }\n", "cannot be read"),
        ("\n\n\tdispatcher: 3\n", "is not valid YAML"),
        ("\n\n\x00", "the character U+0000 cannot be in it"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        read(tmp_path, text)
    assert message in str(refused.value)
    assert "dispatcher.yaml line 3" in str(refused.value)


def test_a_file_that_stands_for_an_endless_one_is_refused(tmp_path: Path) -> None:
    layers = ["a0: &a0 {x: 1}"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)
    ]
    bomb = "schedules:\n  s:\n    task: t\n    expression: '@daily'\n    params:\n"
    bomb += "".join(f"      {layer}\n" for layer in layers)
    with pytest.raises(InvalidSetting, match=r"stands for more than 100,000 values"):
        read(tmp_path, bomb)
    with pytest.raises(InvalidSetting, match="larger than"):
        read(tmp_path, "#" * 5_000_000)


async def test_params_of_a_file_are_checked_against_the_task(
    local: headrace.App, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("schedules:\n\n  a: {task: report, expression: '@daily', params: {x: 1}}\n")
    with pytest.raises(InvalidArguments) as refused:
        cron_dispatcher(local, path)
    assert refused.value.__notes__ == ['schedule "a"', f"{path} line 3"]


async def test_a_file_replaces_what_it_said_before(local: headrace.App, tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"

    async def names(text: str) -> list[str]:
        path.write_text("dispatcher: {owner: shop}\n" + text)
        await cron_dispatcher(local, path).sync()
        return [kept.schedule.name for kept in await local.schedules.records.all()]

    await local.schedules.add(Schedule(name="mine", expression="@daily", task="clean"))
    one, two = ("{task: clean, expression: '@hourly'}", "{task: clean, expression: '@weekly'}")
    assert await names(f"schedules:\n  a: {one}\n  b: {two}\n") == ["a", "b", "mine"]
    assert await names(f"schedules:\n  b: {one}\n") == ["b", "mine"]
    assert (await local.schedules.get("b")).schedule.expression == "@hourly"
    assert await names("schedules: {}\n") == ["mine"]
