"""A real Prometheus scrapes while workers come, stop and are killed: no counter ever goes back."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.server.conftest import address_of
from tests.support.processes import Process, Processes, until
from tests.support.prometheus import run_tool, start_prometheus, tool

LIMIT = 90.0
JOBS = 50
SHOP = """
import headrace

app = headrace.App()


@app.task
async def add(a: int, b: int) -> int:
    return a + b
"""
CONFIGURATION = """
global:
  scrape_interval: 250ms
  scrape_timeout: 250ms
scrape_configs:
  - job_name: headrace
    static_configs:
      - targets: ["{target}"]
"""
EVERYTHING = '{__name__=~"headrace_.*_(total|count|sum|bucket)"}'


@pytest.mark.timeout(300)
async def test_counters_never_go_back(tmp_path: Path) -> None:
    tool("prometheus"), tool("promtool")
    (tmp_path / "shop.py").write_text(SHOP)
    where = {"HEADRACE_URL": f"sqlite:///{tmp_path}/jobs.db", "HEADRACE_APP": "shop"}
    with Processes(tmp_path) as processes:
        server = processes.headrace("server", "--port", "0", "--json", **where)
        address = await address_of(server)
        target = address.removeprefix("http://")
        (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(target=target))
        async with (
            start_prometheus(processes, tmp_path / "prometheus.yml") as prometheus,
            httpx.AsyncClient(base_url=address, timeout=30) as client,
        ):
            done = 0

            async def work(count: int = JOBS) -> None:
                nonlocal done
                jobs = [{"task": "add", "args": {"a": 1, "b": 2}}] * count
                await client.post("/jobs/batch", json={"jobs": jobs})
                done += count
                await counted()

            async def counted() -> None:
                async def told() -> bool:
                    query = 'sum(headrace_attempts_total{task="add"})'
                    return await prometheus.value(query) == done

                await until(told, f"{done} attempts in Prometheus", LIMIT)

            def worker(name: str) -> Process:
                return processes.headrace("worker", "--name", name, **where)

            first = worker("one")
            await work()
            first.terminate()
            assert await first.ended(LIMIT) == 0
            await counted()
            # The same name again, and one that is killed when what it did is known.
            second, third = worker("one"), worker("two")
            await work()
            third.kill()
            await work()
            second.terminate()
            assert await second.ended(LIMIT) == 0
            await counted()
            text = (await client.get("/metrics")).content
            # Some more scrapes, after everybody has gone.
            scrapes = "count_over_time(headrace_engine_up[10m])"
            seen = await prometheus.value(scrapes)

            async def more() -> bool:
                return await prometheus.value(scrapes) > seen + 2

            await until(more, "further scrapes", LIMIT)
            await counted()
            found = await prometheus.ask(f"{EVERYTHING}[10m]")
        assert len(found) > 50
        last = max(each["values"][-1][0] for each in found)
        for series in found:
            values = [float(value) for _, value in series["values"]]
            assert values == sorted(values), series
            # None has vanished.
            assert series["values"][-1][0] == last, series
    await run_tool(tool("promtool"), "check", "metrics", given=text)
