"""Rules and routes by their own tools; dashboards are what the script makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from deploy.grafana.make import FOLDER, all_panels, dashboards, labels_of, text_of, unknown_names

from tests.deploy.files import DEPLOY, load
from tests.support.prometheus import run_tool, tool

RULES = DEPLOY / "prometheus"


def rules() -> Iterator[dict[str, Any]]:
    """All rules of the file."""
    (content,) = load(RULES / "rules.yaml")
    for group in content["groups"]:
        yield from group["rules"]


async def test_prometheus_accepts_configuration_and_rules() -> None:
    command = ("check", "config", "--lint-fatal", "prometheus.yaml")
    said = await run_tool(tool("promtool"), *command, folder=RULES)
    assert f"{len(list(rules()))} rules found" in said


async def test_rules_do_what_they_say() -> None:
    await run_tool(tool("promtool"), "test", "rules", "rules.test.yaml", folder=RULES)


def test_every_alert_is_tried() -> None:
    (content,) = load(RULES / "rules.test.yaml")
    tried = {
        each["alertname"]
        for test in content["tests"]
        for each in test.get("alert_rule_test", [])
        if each.get("exp_alerts")
    }
    assert tried == {rule["alert"] for rule in rules() if "alert" in rule}


async def test_alertmanager_accepts_its_configuration() -> None:
    amtool = tool("amtool", "prometheus-alertmanager")
    file = str(DEPLOY / "alertmanager" / "alertmanager.yaml")
    await run_tool(amtool, "check-config", file)
    for severity, receiver in (("critical", "team"), ("warning", "team"), ("info", "nobody")):
        command = ("config", "routes", "test", f"--config.file={file}")
        said = await run_tool(amtool, *command, f"severity={severity}", "alertname=HeadraceX")
        assert said.splitlines()[-1] == receiver


def test_dashboards_are_what_the_script_makes() -> None:
    made = dashboards()
    assert {path.name for path in FOLDER.glob("*.json")} == set(made)
    for name, content in made.items():
        assert (FOLDER / name).read_text("utf-8") == text_of(content), "run: make dashboards"


@pytest.mark.parametrize("name", dashboards())
def test_panels_have_numbers_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = json.loads((FOLDER / name).read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, panel["title"]
                taken.add((x, y))
    assert len({panel.title for panel in all_panels()}) == len(all_panels())


PAGE = """\
# TYPE headrace_queue_jobs gauge
headrace_queue_jobs{queue="a}b",state="ready"} 1.0
# TYPE headrace_run_seconds histogram
"""


@pytest.mark.parametrize(
    ("expr", "wrong"),
    [
        ('max by (queue) (headrace_queue_jobs{state="ready", job="x"})', []),
        ("max by (le) (rate(headrace_run_seconds_bucket[5m]))", []),
        ("headrace_queue_job", ["there is no metric headrace_queue_job"]),
        ('headrace_queue_jobs{stat="ready"}', ["headrace_queue_jobs has no label stat"]),
        ("max by (lane) (headrace_queue_jobs)", ["no metric has the label lane"]),
    ],
)
def test_names_that_do_not_exist_are_found(expr: str, wrong: list[str]) -> None:
    assert unknown_names(expr, labels_of([PAGE])) == wrong
