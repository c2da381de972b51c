"""A real Prometheus for tests, and questions to it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.support.processes import Process, Processes
from tests.support.servers import free_port


def tool(name: str, package: str = "prometheus") -> str:
    """The path of a program of Prometheus."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here (Debian: apt-get install {package})")
    return found


async def run_tool(*command: str, given: bytes = b"", folder: Path | None = None) -> str:
    """Run a program to its end; what it wrote. It has to succeed."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=-1, stdout=-1, stderr=asyncio.subprocess.STDOUT, cwd=folder
    )
    output, _ = await process.communicate(given)
    assert process.returncode == 0, output.decode()
    return output.decode()


class Prometheus:
    """Asks a server of Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.AsyncClient(base_url=url, timeout=60)

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """What an expression is now; nothing while it starts."""
        try:
            answer = await self._client.get("/api/v1/query", params={"query": query})
        except httpx.TransportError:
            return []
        if answer.status_code == 503:
            return []
        said = answer.json()
        assert said["status"] == "success", f"{query}: {said}"
        result: list[dict[str, Any]] = said["data"]["result"]
        return result

    async def value(self, query: str) -> float:
        """The value of an expression that has one."""
        found = await self.ask(query)
        return float(found[0]["value"][1]) if found else 0.0

    async def get(self, path: str) -> Any:
        """What another question of its API is answered with."""
        return (await self._client.get(f"/api/v1/{path}")).json()["data"]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()


def start_prometheus(processes: Processes, configuration: Path) -> Prometheus:
    """Start one that scrapes as a file says; it ends with the other processes."""
    port = free_port()
    process = Process(
        [
            tool("prometheus"),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={configuration.parent}/prometheus-data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ],
        folder=configuration.parent,
        environment={},
    )
    processes.started.append(process)
    return Prometheus(f"http://127.0.0.1:{port}")
