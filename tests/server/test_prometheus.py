"""A real Prometheus scrapes while workers come, stop and are killed: no counter ever goes back."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.server.conftest import address_of
from tests.support.processes import Process, Processes, until
from tests.support.servers import free_port

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


def tool(name: str) -> str:
    """The path of a program of Prometheus."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here (Debian: apt-get install prometheus)")
    return found


class Prometheus:
    """Asks a server of Prometheus."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=30)

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """What an expression is now; nothing while it starts."""
        try:
            answer = await self._client.get("/api/v1/query", params={"query": query})
        except httpx.TransportError:
            return []
        if answer.status_code == 503:
            return []
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result

    async def value(self, query: str) -> float:
        """The value of an expression that has one."""
        found = await self.ask(query)
        return float(found[0]["value"][1]) if found else 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()


@pytest.mark.timeout(300)
async def test_counters_never_go_back(tmp_path: Path) -> None:
    binary, promtool = tool("prometheus"), tool("promtool")
    (tmp_path / "shop.py").write_text(SHOP)
    where = {"HEADRACE_URL": f"sqlite:///{tmp_path}/jobs.db", "HEADRACE_APP": "shop"}
    with Processes(tmp_path) as processes:
        server = processes.headrace("server", "--port", "0", "--json", **where)
        address = await address_of(server)
        target = address.removeprefix("http://")
        (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(target=target))
        port = free_port()
        scraping = Process(
            [
                binary,
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/prometheus",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ],
            folder=tmp_path,
            environment={},
        )
        processes.started.append(scraping)
        async with (
            Prometheus(f"http://127.0.0.1:{port}") as prometheus,
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
    checked = await asyncio.create_subprocess_exec(
        promtool, "check", "metrics", stdin=-1, stdout=-1, stderr=-1
    )
    output, errors = await checked.communicate(text)
    assert checked.returncode == 0, (output + errors).decode()
