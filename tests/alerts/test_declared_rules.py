"""Rules in files and in code: what is wrong is said with its line, and the rest is stored."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from headrace.alerts.file import AlertsFile, read_alerts
from headrace.clock import Clock
from headrace.errors import InvalidSetting
from headrace.model.alerts.rule import make_rule, parse_size
from tests.alerts.conftest import an_app

GOOD = """\
receivers:
  ops:
    kind: slack
    options:
      url: ${SLACK_URL}
rules:
  late:
    kind: queue_age
    queues: [mail]
    above: 10m
    for: 2m
    repeat: 4h
    severity: critical
    to: [ops]
  full:
    kind: engine_space
    free_below: 1.5GB
    to: ops
"""
VARIABLES = {"SLACK_URL": "https://hooks.example.com/services/x"}


@pytest.fixture
async def app(tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    async with an_app(f"sqlite:///{tmp_path}/alerts.db", clock, tmp_path) as app:
        yield app


def read(folder: Path, text: str, clock: Clock) -> AlertsFile:
    path = folder / "alerts.yaml"
    path.write_text(text)
    return read_alerts(path, now=clock.utcnow(), environment=VARIABLES)


def test_a_file(tmp_path: Path, clock: Clock) -> None:
    file = read(tmp_path, GOOD, clock)
    assert file.problems == []
    late, full = file.rules
    assert (late.above, late.for_, late.repeat, late.queues) == (600, 120, 14_400, ("mail",))
    assert (full.free_below, full.to) == (1.5e9, ("ops",))
    [ops] = file.receivers
    assert ops.options["url"] == VARIABLES["SLACK_URL"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("queue_age", "queue_ages", "kind has the value 'queue_ages'; did you mean \"queue_age\"?"),
        ("above: 10m", "above: soon", "above 'soon' is not a span of time"),
        ("above: 10m", "over: 10m", 'no field "over"'),
        ("queues: [mail]", "names: [mail]", "queue_age has no names; it takes: above, queues"),
        ("severity: critical", "severity: bad", "Invalid enum value 'bad'"),
        ("for: 2m", "for: -2", "for must be between 0 s"),
        ("to: [ops]", "to: []", "to names no receiver"),
        ("repeat: 4h", "repeat: 10s", "repeat must be at least 60 s, got 10"),
        ("free_below: 1.5GB", "above: a lot", "above 'a lot' is not a size"),
        ("${SLACK_URL}", "${OTHER_URL}", "needs the environment variable OTHER_URL"),
        ("kind: slack", "kind: pigeon", "pigeon"),
        ("receivers:", "receiver:", 'no part "receiver"; did you mean "receivers"?'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, clock: Clock, before: str, after: str, said: str
) -> None:
    text = GOOD.replace(before, after, 1)
    file = read(tmp_path, text, clock)
    [problem] = file.problems
    assert said in problem
    line = next(number for number, each in enumerate(text.splitlines(), 1) if after in each)
    # Of receivers the line is that of the option, or of the receiver.
    lines = [line] if line > 5 or after == "receiver:" else [2, line]
    assert any(f"alerts.yaml line {each}" in problem for each in lines), problem
    # The rest can be used.
    assert len(file.rules) + len(file.receivers) == 2


async def test_servers_store_what_is_declared(
    app: headrace.App,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLACK_URL", VARIABLES["SLACK_URL"])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config" / "alerts.yaml"
    path.parent.mkdir()
    path.write_text(GOOD)
    app.alert("letters", "dead_letters", to="ops", for_="1m")
    await app.alert_loop()._declared.store()
    rules = {each.name: each for each in await app.alert_rules()}
    assert {name: each.origin for name, each in rules.items()} == {
        "late": "file config/alerts.yaml",
        "full": "file config/alerts.yaml",
        "letters": "code",
    }
    assert all(each.problem is None for each in rules.values())
    # What people change stays, until the file says something else of it.
    await app.put_alert_rule("late", "queue_age", "ops", above=5)
    await app.alert_loop()._declared.store()
    assert (await app.alert_rule("late")).above == 5
    caplog.set_level(logging.WARNING)
    path.write_text(GOOD.replace("10m", "20m").replace("free_below: 1.5GB", "free_below: much"))
    await app.alert_loop()._declared.store()
    assert (await app.alert_rule("late")).above == 1_200
    # One that is wrong now stays as it was.
    assert (await app.alert_rule("full")).free_below == 1.5e9
    assert "free_below 'much' is not a size" in caplog.text
    assert "config/alerts.yaml line 17" in caplog.text
    path.write_text(GOOD.partition("  full")[0])
    # Without a name of the service, a rule may be of another one: it stays.
    await app.alert_loop()._declared.store()
    assert {each.name for each in await app.alert_rules()} == {"late", "full", "letters"}
    assert "HEADRACE_SCHEDULES_OWNER" in caplog.text
    assert list(await app.apply_alerts(Path("config/alerts.yaml"))) == ["full"]
    assert {each.name for each in await app.alert_rules()} == {"late", "letters"}
    assert [each.name for each in await app.destinations()] == ["ops"]
    path.write_text("rules: [\n")
    await app.alert_loop()._declared.store()
    assert "no alert rule of it is stored" in caplog.text
    with pytest.raises(InvalidSetting, match="two alert rules"):
        app.alert("letters", "dead_letters", to="ops")


async def test_services_with_names_leave_each_other_alone(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Both have an App of the same name, and no idea of each other."""
    url = f"sqlite:///{tmp_path}/alerts.db"

    async def start(owner: str, **rules: float) -> None:
        async with headrace.App(url, clock=clock, schedules_owner=owner, app="app:app") as app:
            for name, above in rules.items():
                app.alert(name, "queue_length", to="ops", above=above)
            await app.alert_loop()._declared.store()

    await start("shop", long=1, short=2)
    await start("bank", other=3, short=9)
    async with headrace.App(url, clock=clock) as app:
        found = {each.name: each.above for each in await app.alert_rules()}
        assert found == {"long": 1, "short": 2, "other": 3}
        assert 'belongs to "shop"' in caplog.text
        await start("shop", long=1)
        assert {each.name for each in await app.alert_rules()} == {"long", "other"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "queue_length"}, "has no to"),
        ({"kind": "queue_length", "to": "a"}, "queue_length needs above"),
        ({"kind": "failure_rate", "to": "a", "above": 5}, "a share of failed jobs"),
        ({"kind": "failure_rate", "to": "a", "above": 0.1, "window": 10}, "between 1 minute"),
        ({"kind": "failure_rate", "to": "a", "above": 0.1, "least": 0}, "least must be"),
        ({"kind": "engine_space", "to": "a"}, "above (bytes in use) or free_below"),
        ({"kind": "dead_letters", "to": "a", "above": -1}, "above must be 0 or more"),
        ({"kind": "dead_letters", "to": "a b"}, "receiver name 'a b' is not valid"),
        ({"kind": "dead_letters", "to": "a", "above": True}, "above must be a number"),
        ({"kind": "dead_letters", "to": "a", "summary": "a\nb"}, "summary must be one line"),
    ],
)
def test_rules_that_make_no_sense(fields: dict[str, object], said: str) -> None:
    with pytest.raises(headrace.InvalidInput) as caught:
        make_rule("rule", fields)
    assert said in str(caught.value)


def test_sizes_and_shares() -> None:
    assert parse_size("above", "20 MB") == 20e6
    assert make_rule("r", {"kind": "failure_rate", "to": "a", "above": "10%"}).above == 0.1
