"""`headrace artifacts` and `headrace prune`, over both kinds of store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.upkeep.files import PRUNED
from tests.cli.conftest import Cli
from tests.server.conftest import client_of

NAMES = ["report.csv", "보고서/사월.txt", "x" * 900 + ".bin"]


async def a_job(url: str, setting: str) -> str:
    """A finished job that has kept files."""
    async with headrace.App(url, artifacts=setting) as app:

        @app.task
        async def keep(ctx: headrace.Context) -> None:
            for name in NAMES:
                await ctx.artifacts.put(name, name.encode(), layer="gold", media_type="text/csv")

        job = await keep.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        return job.id


async def look(cli: Cli, job_id: str, folder: Path, environment: dict[str, Any]) -> None:
    """List and get, and what is told when that cannot be done."""

    def run(*arguments: str, code: int = 0) -> str:
        ran = cli("artifacts", *arguments, code=code, **environment)
        return ran.err if code else ran.out

    listed = cli("artifacts", "list", job_id, "--json", **environment).json["artifacts"]
    assert [file["name"] for file in listed] == NAMES
    assert len(listed[0]["sha256"]) == 64
    table = run("list", job_id)
    assert table.split()[:5] == ["LAYER", "SIZE", "TYPE", "SHA-256", "NAME"]
    assert "보고서/사월.txt" in table
    assert run("get", job_id, "gold/report.csv") == "report.csv (10 B)\n"
    assert (folder / "report.csv").read_text() == "report.csv"
    assert "is there already" in run("get", job_id, "gold/report.csv", code=2)
    run("get", job_id, "gold/보고서/사월.txt", "--output", "report.csv", "--force")
    assert (folder / "report.csv").read_text() == "보고서/사월.txt"
    assert run("get", job_id, f"gold/{NAMES[2]}", "-o", "-") == NAMES[2]
    assert "has no file 'gold/absent'; it has: gold/report.csv" in run(
        "get", job_id, "gold/absent", code=1
    )
    (folder / "report.csv").unlink()


async def test_list_and_get(tmp_path: Path, setting: str) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    job_id = await a_job(url, setting)
    cli = Cli(tmp_path, url)
    await look(cli, job_id, tmp_path, {"HEADRACE_ARTIFACTS": setting})


async def test_list_and_get_over_http(tmp_path: Path) -> None:
    url, setting = f"sqlite:///{tmp_path}/jobs.db", str(tmp_path / "artifacts")
    job_id = await a_job(url, setting)
    cli = Cli(tmp_path, "sqlite:////nowhere/at/all.db")
    async with headrace.App(url, artifacts=setting) as app, client_of(app) as client:
        environment = {"API_URL": str(client.base_url), "HEADRACE_APP": "nothing"}
        # The commands block, and the server has to answer them meanwhile.
        await asyncio.to_thread(
            lambda: asyncio.run(look(cli, job_id, tmp_path, environment)),
        )


async def test_prune_tells_about_files(tmp_path: Path, setting: str) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    job_id = await a_job(url, setting)
    cli = Cli(tmp_path, url)
    told = cli("prune", "--keep", "0", HEADRACE_ARTIFACTS=setting).out
    assert "Deleted 1 job" in told
    assert "Removed the files of 1 pruned job." in told
    async with headrace.App(url, artifacts=setting) as app:
        assert await app.engine.record_list(PRUNED) == []
        with pytest.raises(headrace.ArtifactNotFound):
            await app.artifact_store.size(f"gold/{job_id}/1/report.csv")
    again = cli("prune", "--keep", "0", "--json", HEADRACE_ARTIFACTS=setting).json
    assert (again["pruned"], again["files_removed_of"]) == (0, 0)
