"""The command line analyses, shows, finds, schedules and removes shops; on the store and through a
server.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import pytest_asyncio
from spots_support.places import Spots, open_spots

import headrace
from headrace.cli.main import run
from headrace.server.listen import listening
from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop

PLAN = ShopPlan(slug="shop", name="The Shop", pages=2, per_page=5)
NOBODY = "0123456789abcdef"


class Shell:
    """Runs commands beside a worker."""

    def __init__(self, spots: Spots, shop: MockShop, folder: Path, server: str) -> None:
        self.spots = spots
        self.shop = shop
        self.folder = folder
        self.server = server

    async def run(self, *arguments: str, remote: bool, code: int = 0) -> str:
        """Run a command to its end and return what it printed. `remote`: it knows the server
        alone.
        """
        settings = {
            "HEADRACE_URL": "sqlite:////nowhere/jobs.db" if remote else self.spots.app.settings.url,
            "HEADRACE_SPOTS_ALLOW_PRIVATE": "true",
            **({"API_URL": self.server} if remote else {}),
        }
        printed = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with mock.patch.dict(os.environ, settings), contextlib.redirect_stdout(printed):
            # A thread of its own, as a command has an event loop of its own.
            ended = await asyncio.to_thread(run, ["spots", *arguments])
        text: str = printed.buffer.getvalue().decode()  # type: ignore[attr-defined]
        assert ended == code, text
        return text


@pytest_asyncio.fixture
async def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setenv("HEADRACE_ARTIFACTS", str(tmp_path / "files"))
    monkeypatch.chdir(tmp_path)
    async with (
        MockShop([PLAN]) as shop,
        open_spots(f"sqlite:///{tmp_path}/jobs.db") as spots,
        listening(spots.app, host="127.0.0.1", port=0) as server,
    ):
        worker = headrace.JobOrchestrator(spots.app)
        await worker.start()
        yield Shell(spots, shop, tmp_path, server)
        await worker.stop()


@pytest.mark.parametrize("remote", [False, True], ids=["store", "server"])
async def test_a_shop_is_added_shown_found_and_removed(shell: Shell, *, remote: bool) -> None:
    async def run(*arguments: str, code: int = 0) -> str:
        return await shell.run(*arguments, remote=remote, code=code)

    added = json.loads(await run("add", shell.shop.url("/shop/"), "--json"))
    (run_view,) = added["jobs"]
    assert (run_view["status"], run_view["reviews"]) == ("completed", 10)
    store = run_view["store"]["store_id"]
    assert "The Shop" in await run("list")
    assert "The Shop" in await run("show", store)
    shown = json.loads(await run("show", run_view["run_id"], "--json"))
    assert shown["status"] == "completed"
    hits = json.loads(await run("search", "coffee", "-k", "2", "--json"))["hits"]
    assert len(hits) == 2
    assert "bytes" in await run("report", store, "-o", "r.html")
    assert "<svg" in (shell.folder / "r.html").read_text()
    assert "06:00" in await run("schedule", store, "0 6 * * 1")
    assert "Removed." in await run("schedule", store, "--remove")
    assert "1 removed" in await run("remove", store)
    await run("show", store, code=2)


async def test_mistakes_are_told(shell: Shell) -> None:
    for remote in (False, True):
        await shell.run("add", "not a url", remote=remote, code=1)
        await shell.run("remove", NOBODY, remote=remote, code=1)
        await shell.run("report", NOBODY, remote=remote, code=2)


async def test_a_schedule_analyses_a_shop_again_once_for_each_time(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    spots = shell.spots
    run_id = (await spots.post(shell.shop.url("/shop/")))["job_id"]
    await until_completed(spots, run_id)
    store = (await spots.get(run_id))["store"]["store_id"]
    answer = await spots.client.put(f"/spots/stores/{store}/schedule", json={"cron": "0 6 * * 1"})
    assert answer.status_code == 200, answer.text
    detail = (await spots.client.get(f"/spots/stores/{store}")).json()
    assert detail["schedule"]["cron"] == "0 6 * * 1"
    assert "Monday" in detail["schedule"]["words"]
    job = await spots.app.trigger_schedule(f"spots-{store}")
    again = await spots.app.result(job.id, timeout=60)
    await until_completed(spots, again)
    assert again != run_id
    # An attempt that was killed after it had asked: the next one finds what it asked for.
    assert await spots.shops.add_again(store, job.id) == again
    wrong = await spots.client.put(f"/spots/stores/{store}/schedule", json={"cron": "often"})
    assert wrong.status_code == 422
    assert (await spots.client.delete(f"/spots/stores/{store}/schedule")).status_code == 204
    assert (await spots.client.delete(f"/spots/stores/{store}/schedule")).status_code == 404


async def until_completed(spots: Spots, run_id: str) -> None:
    async def done() -> Any:
        return (await spots.get(run_id))["status"] in ("completed", "failed")

    for _ in range(600):
        if await done():
            break
        await asyncio.sleep(0.1)
    shown = await spots.get(run_id)
    assert shown["status"] == "completed", shown


async def test_wrong_questions_are_refused(shell: Shell) -> None:
    client = shell.spots.client
    for path in (
        "/spots/jobs?status=done",
        "/spots/jobs?limit=0",
        "/spots/stores?cursor=x",
        "/spots/search?q=",
        "/spots/search?q=a&k=0",
        f"/spots/stores/{NOBODY}/reviews?label=happy",
    ):
        assert (await client.get(path)).status_code == 422, path
    for path in ("/spots/jobs/x", "/spots/jobs/%00/report", f"/spots/stores/{NOBODY}"):
        assert (await client.get(path)).status_code == 404, path
    assert (await client.post("/spots/jobs", json={"link": "x"})).status_code == 422


async def test_the_queue_and_the_address_of_the_older_system_are_understood(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from headrace.config import load
    from headrace_spots.settings import SpotsSettings

    assert SpotsSettings().queue == "hidden_spot"
    monkeypatch.setenv("RQ_QUEUE", "spots-of-old")
    assert SpotsSettings().queue == "spots-of-old"
    older = {"REDIS_URL": "redis://127.0.0.1:1/2", "HEADRACE_BUNDLES": "spots"}
    assert load(environment=older, folder=tmp_path).url == "redis://127.0.0.1:1/2"
