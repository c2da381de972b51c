"""Where the tests put jobs, rows and files: SQLite alone; all in PostgreSQL; Redis with rows in
PostgreSQL and files in a real S3 server. The code under test is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.objects import S3Server
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    postgres_binaries,
    redis_binaries,
)

import headrace
import headrace.server
from headrace.bundles import Setup
from headrace_spots.bundle import bundle
from headrace_spots.service import SpotsService
from headrace_spots.shops import Shops

PLACES = ["sqlite", "postgres", "redis"]
EVERYWHERE = pytest.mark.parametrize("place", PLACES, indirect=True)


@dataclass(frozen=True)
class Place:
    """A store that nobody else uses."""

    name: str
    url: str
    environment: dict[str, str] = field(default_factory=dict)


class Places:
    """Starts each server when the first test asks for it."""

    def __init__(self) -> None:
        self.postgres: PostgresServer | None = None
        self.redis: RedisServer | None = None
        self.s3: S3Server | None = None
        self._count = 0

    def make(self, name: str, folder: Path, *, s3: bool = True) -> Place:
        """Return a place. `s3`: files of the place `redis` are in the S3 server."""
        self._count += 1
        files = {"HEADRACE_ARTIFACTS": str(folder / "artifacts")}
        if name == "sqlite":
            return Place(name, f"sqlite:///{folder}/jobs.db", files)
        if name == "postgres":
            return Place(name, f"{self._postgres()}?schema=s{self._count}", files)
        if self.redis is None:
            self.redis = RedisServer(redis_binaries()["redis"], name="spots")
            self.redis.start()
        tables = f"{self._postgres()}?schema=t{self._count}"
        environment = {**files, "HEADRACE_SPOTS_URL": tables}
        if s3:
            server = self._s3()
            environment |= server.environment()
            environment["HEADRACE_ARTIFACTS"] = server.artifacts(f"spots{self._count}")
        return Place(name, f"{self.redis.url}?namespace=s{self._count}", environment)

    def destroy(self) -> None:
        """Stop what was started."""
        for server in (self.postgres, self.redis, self.s3):
            if server is not None:
                server.destroy()

    def _postgres(self) -> str:
        if self.postgres is None:
            self.postgres = PostgresServer(postgres_binaries()["postgres"], name="spots")
            self.postgres.start()
        return self.postgres.url

    def _s3(self) -> S3Server:
        if self.s3 is None:
            self.s3 = S3Server()
            self.s3.start()
        return self.s3


@dataclass
class Spots:
    """The bundle in one App, and a client of its server."""

    app: headrace.App
    setup: Setup
    shops: Shops
    client: httpx.AsyncClient

    @property
    def service(self) -> SpotsService:
        return SpotsService.of(self.setup)

    async def work(self, **options: Any) -> None:
        """Run jobs until there are none."""
        await headrace.JobOrchestrator(self.app, **options).run_until_idle()

    async def run(self, url: str) -> dict[str, Any]:
        """Have a shop analysed by this process and return its run."""
        job_id = (await self.post(url))["job_id"]
        await self.work()
        return await self.get(job_id)

    async def post(self, url: str) -> dict[str, Any]:
        answer = await self.client.post("/spots/jobs", json={"url": url})
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def get(self, job_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/spots/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@asynccontextmanager
async def open_spots(url: str, **settings: Any) -> AsyncIterator[Spots]:
    """Open an App with the bundle."""
    app = headrace.App(url)
    setup = app.load_bundle(bundle, **{"allow_private": True, "delay_seconds": 0.0, **settings})
    async with app:
        transport = httpx.ASGITransport(headrace.server.create(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield Spots(app, setup, Shops(SpotsService.of(setup)), client)
