"""Where the tests put jobs, rows and files: SQLite alone; all in PostgreSQL; Redis with rows in
PostgreSQL and files in a real S3 server. The code under test is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.processes import until
from tests.support.stores import ENGINES, Stores

import headrace
import headrace.server
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.scanner import Scanner
from headrace_scanner.service import ScannerService
from scanner_support import held

EVERYWHERE = pytest.mark.parametrize("place", ENGINES, indirect=True)
LIMIT = 300.0


@dataclass(frozen=True)
class Place:
    """A store that nobody else uses, and what programs have to be told about it."""

    name: str
    url: str
    environment: dict[str, str] = field(default_factory=dict)


def a_place(stores: Stores, name: str, folder: Path, shops: MockShops, *, s3: bool = True) -> Place:
    """Make a place. `s3`: files of the place `redis` are in the S3 server."""
    environment = {
        "HEADRACE_URL": stores.url(name, folder),
        "HEADRACE_ARTIFACTS": str(folder / "artifacts"),
        "HEADRACE_SCANNER_SHOPS": shops.url,
    }
    if name == "redis":
        environment["HEADRACE_SCANNER_URL"] = stores.tables()
        if s3:
            bucket, more = stores.artifacts()
            environment |= {"HEADRACE_ARTIFACTS": bucket, **more}
    return Place(name, environment["HEADRACE_URL"], environment)


@dataclass
class Scanning:
    """The bundle in one App, a client of its server, and the shops."""

    app: headrace.App
    service: ScannerService
    scanner: Scanner
    client: httpx.AsyncClient
    shops: MockShops

    async def work(self, **options: Any) -> None:
        """Run jobs until there are none."""
        await headrace.JobOrchestrator(self.app, **options).run_until_idle()

    async def execute(self, workflow: str, params: dict[str, Any], **more: Any) -> str:
        """Begin a run as callers do, and return its id."""
        body = {"workflow_id": workflow, "params": params, **more}
        answer = await self.client.post("/api/v2/workflows/execute", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["data"]["job_id"])

    async def scan(self, platform: str, products: Sequence[str], **more: Any) -> dict[str, Any]:
        """Scan products by a worker of this process, and return the scan."""
        params = {"products": list(products), **more}
        run = await self.execute(f"{platform}-validation-v2", params)
        await self.work()
        return await self.get(run)

    async def get(self, scan_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/scanner/scans/{scan_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def changes(self, **params: Any) -> list[dict[str, Any]]:
        answer = await self.client.get("/scanner/changes", params=params)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["changes"]
        return found

    async def finished(self, job_id: str) -> headrace.Job:
        """Wait until a job has ended."""

        async def over() -> headrace.Job | None:
            job = await self.app.get(job_id)
            return job if job.status.final else None

        found = await until(over, f"the end of job {job_id}", LIMIT)
        assert found is not None
        return found


@asynccontextmanager
async def open_scanner(place: Place, shops: MockShops, **settings: Any) -> AsyncIterator[Scanning]:
    """Open an App with the bundle."""
    app = held.app = headrace.App(place.url, bundles=["scanner"], **settings)
    loaded = app.bundles.find("scanner")
    assert loaded is not None, app.bundles.failures
    service = ScannerService.of(loaded.setup)
    async with app:
        transport = httpx.ASGITransport(headrace.server.create(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield Scanning(app, service, Scanner(service), client, shops)
