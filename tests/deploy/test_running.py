"""The ten services of the Compose file run, are healthy, work, are scraped and shown, and stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from deploy.grafana.make import all_panels, labels_of, unknown_names
from ruamel.yaml import YAML

from headrace.installed import installed
from tests.conftest import Servers, store_url
from tests.deploy.files import DEPLOY, QUEUES, load, manifests
from tests.deploy.stack import Stack
from tests.support.processes import until
from tests.support.prometheus import Prometheus, run_tool, start_prometheus, tool

LIMIT = 120.0
# Until `scanner` is installed: a task for each of its queues, one at a time, and one that fails.
STAND_IN = f"""
import headrace

app = headrace.App()


async def check(ctx: headrace.Context, product: int) -> int:
    await ctx.stage("reading", int, product)
    return product


for queue in {QUEUES!r}:
    app.task(name=f"check.{{queue}}", queue=queue, lane="platform:{{queue}}")(check)


@app.task(queue="default", retries=0)
async def broken() -> None:
    raise ValueError("the shop is closed")
"""


@pytest.fixture
def stack(tmp_path: Path, servers: Servers) -> Iterator[Stack]:
    """The services, with the store that the file has by default."""

    def change(environment: dict[str, str]) -> None:
        if "scanner" not in installed():
            del environment["HEADRACE_BUNDLES"], environment["HEADRACE_SCANNER_URL"]
            environment["HEADRACE_APP"] = "stand_in"

    (tmp_path / "stand_in.py").write_text(STAND_IN)
    store = store_url("postgres", servers, tmp_path)
    made = Stack(tmp_path, store=store, database=store, change=change)
    with made.processes:
        yield made


@pytest.mark.timeout(600)
async def test_the_ten_services_run_work_and_are_shown(stack: Stack, tmp_path: Path) -> None:
    tool("prometheus"), tool("promtool")
    # As docs/how-to/deploy.md has it: the first key by a command in a container.
    await stack.run("migrate")
    said = await stack.run(
        "cron", "headrace", "keys", "create", "first", "--scope", "admin", "--json"
    )
    key = json.loads(said)["key"]
    await stack.up()
    configuration = scrape_configuration(stack, tmp_path, key)
    address = f"http://127.0.0.1:{stack.api}"
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client,
        start_prometheus(stack.processes, configuration) as prometheus,
    ):
        assert (await httpx.AsyncClient(base_url=address).get("/jobs")).status_code == 401
        await work(client)
        assert list(stack.above_limits()) == []
        await judge_names(stack, client)
        await until(lambda: all_up(prometheus), "a scrape of all ten", LIMIT)
        await judge_panels(prometheus, client)
        await judge_rules(prometheus)
    codes = await stack.down()
    assert codes == dict.fromkeys(stack.services, 0)


async def work(client: httpx.AsyncClient) -> None:
    """Each queue's worker does a job of its queue, and one fails."""
    jobs = [{"task": f"check.{queue}", "args": {"product": 1}} for queue in QUEUES]
    answer = await client.post("/jobs/batch", json={"jobs": [*jobs, {"task": "broken"}]})
    assert answer.status_code == 202, answer.text
    ids = [each["job_id"] for each in answer.json()["jobs"]]

    async def done() -> list[dict[str, Any]] | None:
        found = [(await client.get(f"/jobs/{each}")).json() for each in ids]
        finished = all(each["status"] in {"completed", "failed"} for each in found)
        return found if finished else None

    found = await until(done, "the jobs of all queues", LIMIT)
    assert found is not None
    assert [each["status"] for each in found] == ["completed"] * len(QUEUES) + ["failed"]
    workers = (await client.get("/workers")).json()["workers"]
    assert {each["name"]: each["queues"] for each in workers} == {each: [each] for each in QUEUES}


def scrape_configuration(stack: Stack, folder: Path, key: str) -> Path:
    """The file of deploy/ with the targets of this machine, more often, and with lanes."""
    text = (DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8")
    text = text.replace("  #- job_name", "  - job_name").replace("\n  #  ", "\n    ")
    content = stack.mapped("", YAML(typ="safe").load(text))
    content["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    del content["alerting"]
    path = folder / "prometheus.yaml"
    with path.open("w") as file:
        YAML(typ="safe").dump(content, file)
    (folder / "rules.yaml").write_text((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))
    (folder / "api_key").write_text(key)
    return path


async def all_up(prometheus: Prometheus) -> bool:
    """Whether each of the ten, and the API with its key, were scraped."""
    up = await prometheus.ask("up == 1")
    return len(up) == len(QUEUES) + 3


async def judge_names(stack: Stack, client: httpx.AsyncClient) -> None:
    """Every metric and label in panels, rules and scaling is in a page of a real process."""
    pages = {"api": (await client.get("/metrics")).text}
    async with httpx.AsyncClient(timeout=60) as probes:
        for name, port in stack.probes.items():
            pages[name] = (await probes.get(f"http://127.0.0.1:{port}/metrics")).text
    for name, page in pages.items():
        assert "headrace_build{" in page, name
        await run_tool(tool("promtool"), "check", "metrics", given=page.encode())
    known = labels_of(pages.values())
    for expr in [panel.expr for panel in all_panels()] + list(queries()):
        assert unknown_names(expr, known) == [], expr


def queries() -> Iterator[str]:
    """The expressions of rules, and those that workers scale by."""
    (rules,) = load(DEPLOY / "prometheus" / "rules.yaml")
    for group in rules["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for document in manifests()["components/keda/scaling.yaml"]:
        for trigger in document["spec"]["triggers"]:
            yield trigger["metadata"]["query"]


async def judge_panels(prometheus: Prometheus, client: httpx.AsyncClient) -> None:
    """Each panel has data, except those that need what does not happen here."""
    waiting = {panel.title: panel for panel in all_panels()}

    async def all_shown() -> bool:
        # Rates need attempts between two scrapes.
        await client.post("/jobs", json={"task": "check.default", "args": {"product": 2}})
        await client.post("/jobs", json={"task": "broken"})
        for title, panel in list(waiting.items()):
            expr = panel.expr.replace("$__rate_interval", "1m").replace("$queue", ".*")
            if any(each["value"][1] != "NaN" for each in await prometheus.ask(expr)):
                del waiting[title]
        return all(panel.optional for panel in waiting.values())

    await until(all_shown, f"data in {sorted(waiting)}", LIMIT)


async def judge_rules(prometheus: Prometheus) -> None:
    """All rules can be evaluated, and none that is about trouble fires."""

    async def evaluated() -> list[dict[str, Any]] | None:
        groups = (await prometheus.get("rules"))["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = await until(evaluated, "an evaluation of all rules", LIMIT)
    assert rules is not None
    assert {rule["health"] for rule in rules} == {"ok"}
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert firing == set()
    assert await prometheus.ask("headrace:attempts:rate5m")
