"""The server is measured beside a bare route: both have to speak the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scenarios.http_program import BODY, bare, make_app
from fastapi import FastAPI

from headrace.server import create


async def handed_in(api: FastAPI) -> dict[str, Any]:
    transport = httpx.ASGITransport(api, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        stored = await client.post("/jobs", json=BODY)
        assert stored.status_code == 202
        job: dict[str, Any] = stored.json()
        assert stored.headers["location"] == f"/jobs/{job['job_id']}"
        read = (await client.get(f"/jobs/{job['job_id']}")).json()
        # Whoever looks at one job sees its stages too; a job that is new has none.
        assert read.pop("stages", []) == []
        assert read.keys() == job.keys()
    return job


async def test_a_bare_route_answers_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_URL", f"sqlite:///{tmp_path}/jobs.db")
    async with make_app() as app:
        ours, theirs = await handed_in(create(app)), await handed_in(bare())
    assert list(ours) == list(theirs)
    for field in ("task", "args", "queue", "status"):
        assert ours[field] == theirs[field]
