"""The ten services of the Compose file run, are healthy, work, are scraped and shown, and stop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from deploy.grafana.make import all_panels, labels_of, unknown_names
from ruamel.yaml import YAML

from headrace_scanner.demo import FIRST, demo_products
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.platforms import SHOPS
from tests.conftest import Servers, store_url
from tests.deploy.files import BROWSERS, DEPLOY, QUEUES, load, manifests
from tests.deploy.stack import BROWSER, Stack, Watch
from tests.support.processes import until
from tests.support.prometheus import Prometheus, run_tool, start_prometheus, tool

LIMIT = 240.0
# So many products of each shop; the demo has more.
PRODUCTS = 3


@pytest.fixture
async def shops() -> AsyncIterator[MockShops]:
    """The shops of the demo."""
    async with MockShops() as made:
        yield made


@pytest.fixture
def stack(tmp_path: Path, servers: Servers, shops: MockShops) -> Iterator[Stack]:
    """The services, with the store that the file has by default."""

    def change(environment: dict[str, str]) -> None:
        environment["HEADRACE_SCANNER_SHOPS"] = shops.url
        if "HEADRACE_SCANNER_BROWSER" in environment:
            environment["HEADRACE_SCANNER_BROWSER"] = BROWSER

    store = store_url("postgres", servers, tmp_path)
    made = Stack(
        tmp_path, store=store, database=store_url("postgres", servers, tmp_path), change=change
    )
    with made.processes:
        yield made


@pytest.mark.timeout(600)
async def test_the_ten_services_run_work_and_are_shown(
    stack: Stack, shops: MockShops, tmp_path: Path
) -> None:
    tool("prometheus"), tool("promtool")
    # As docs/how-to/deploy.md has it: the first key by a command in a container.
    await stack.prepare()
    said = await stack.run(
        "cron", "headrace", "keys", "create", "first", "--scope", "admin", "--json"
    )
    key = json.loads(said)["secret"]
    configuration = scrape_configuration(stack, tmp_path, key)
    await run_tool(tool("promtool"), "check", "config", str(configuration))
    await stack.up()
    address = f"http://127.0.0.1:{stack.api}"
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client,
        start_prometheus(stack.processes, configuration) as prometheus,
    ):
        assert (await client.get("/jobs", headers={"Authorization": ""})).status_code == 401
        async with Watch(stack) as watch:
            await work(client, shops)
        assert watch.above == set()
        # A browser may have come and gone between two looks: not each of them has to be met.
        assert watch.browsers, f"{watch.looks} looks while browsers ran"
        assert watch.browsers <= BROWSERS
        await judge_names(stack, client)
        await until(lambda: all_up(prometheus), "a scrape of all ten", LIMIT)
        await judge_panels(prometheus, client, shops)
        await judge_rules(prometheus)
    codes = await stack.down()
    assert codes == dict.fromkeys(stack.services, 0)


async def work(client: httpx.AsyncClient, shops: MockShops) -> None:
    """The demo's work, by HTTP: products of all shops are scanned, and one is extracted."""
    rows = [row for row in demo_products(shops) if int(str(row.url)[-4:]) < FIRST + PRODUCTS]
    assert {row.platform for row in rows} == set(SHOPS)
    body = {"products": msgspec.to_builtins(rows)}
    (await client.put("/scanner/sets/spring", json=body)).raise_for_status()
    ids = [await begun(client, "scans", platform=shop, set="spring") for shop in SHOPS]
    url = shops.page("extract", "77")
    extraction = await begun(client, "extractions", type="url_extraction", url=url, set="spring")

    async def ended() -> dict[str, str] | None:
        found = {each: (await client.get(f"/jobs/{each}")).json() for each in [*ids, extraction]}
        over = all(job["status"] in {"completed", "failed"} for job in found.values())
        return {each: job["status"] for each, job in found.items()} if over else None

    statuses = await until(ended, "the scans of all platforms", LIMIT)
    assert set((statuses or {}).values()) == {"completed"}
    for shop, scan in zip(SHOPS, ids, strict=True):
        seen = (await client.get(f"/scanner/scans/{scan}")).json()
        assert seen["status"] == "completed", (shop, seen)
        # The shop itself was asked for each of them, by the worker of its queue.
        asked = {visit.product for visit in shops.visits if visit.shop == shop}
        assert len(asked) >= PRODUCTS, shop
    workers = (await client.get("/workers")).json()["workers"]
    assert {each["name"]: each["queues"] for each in workers} == {each: [each] for each in QUEUES}


async def begun(client: httpx.AsyncClient, what: str, **body: Any) -> str:
    """Begin something, and answer its job."""
    answer = await client.post(f"/scanner/{what}", json=body)
    assert answer.status_code == 202, answer.text
    job: str = answer.json()["job_id"]
    return job


def scrape_configuration(stack: Stack, folder: Path, key: str) -> Path:
    """The file of deploy/ with the targets of this machine, more often, and with lanes."""
    text = (DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8")
    ahead, mark, lanes = text.partition("  #- job_name: headrace-lanes")
    assert mark
    text = ahead + (mark + lanes).replace("  #", "  ")
    content = stack.mapped("", YAML(typ="safe").load(text))
    often = ("scrape_interval", "scrape_timeout", "evaluation_interval")
    content["global"] = dict.fromkeys(often, "3s")
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


async def judge_panels(prometheus: Prometheus, client: httpx.AsyncClient, shops: MockShops) -> None:
    """Each panel has data, except those that need what does not happen here."""
    waiting = {panel.title: panel for panel in all_panels()}
    end = time.monotonic() + LIMIT
    while not all(panel.optional for panel in waiting.values()):
        assert time.monotonic() < end, f"no data in {sorted(waiting)}"
        # Rates need attempts between two scrapes.
        product = shops.page("hwahae", str(FIRST))
        await begun(client, "scans", platform="hwahae", products=[product])
        await asyncio.sleep(1)
        for title, panel in list(waiting.items()):
            expr = panel.expr.replace("$__rate_interval", "1m").replace("$queue", ".*")
            if any(each["value"][1] != "NaN" for each in await prometheus.ask(expr)):
                del waiting[title]


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
    # On a busy machine a lease may be renewed too late.
    assert firing <= {"HeadraceLeasesLost"}
    for query in queries():
        # What a worker scales by is one number, also while its queue is empty.
        if query.startswith("max(headrace_queue_"):
            assert len(await prometheus.ask(query)) == 1, query
    # A rate needs two scrapes, and then a turn of the rules.
    rate = "headrace:attempts:rate5m"
    await until(lambda: prometheus.ask(rate), "the rate of attempts", LIMIT)
