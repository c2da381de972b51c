"""Workers that die at every point of the analysis: row and job agree at rest, no page that was kept
is fetched again, and all has one id.

The suite kills a few workers on each engine; `make spots-kills` two hundred.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from spots_support.places import Places
from spots_support.shop_lives import make_app
from tests.crash import journal
from tests.crash.journal import Line

import headrace
from headrace_spots.agreement import Agreement
from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop
from headrace_spots.service import SpotsService
from headrace_spots.shops import Shops

KILLS = int(os.environ.get("HEADRACE_TEST_SPOTS_KILLS", "18"))
"""How many in all, over these places."""
ENGINES = ["sqlite", "postgres", "redis"]
LIVES = -(-KILLS // len(ENGINES))
# A shop is killed about so often before it is analysed.
KILLS_PER_SHOP = 3
# Each so many shops one may be tried twice only, so that it fails.
FRAIL = 4
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
LAYERS = {"bronze", "silver", "gold", "artifacts"}
ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(120 + LIVES * 20)
@pytest.mark.parametrize("engine", ENGINES)
async def test_rows_and_jobs_agree_wherever_workers_die(
    engine: str, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = places.make(engine, tmp_path, s3=False)
    environment = {**place.environment, journal.VARIABLE: str(tmp_path / "journal.jsonl")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    count = LIVES // KILLS_PER_SHOP + 3
    plans = [
        ShopPlan(slug=f"s{number}", name=f"Shop {number}", pages=3, per_page=3, seed=number)
        for number in range(count)
    ]
    app, setup = make_app(place.url)
    service = SpotsService.of(setup)
    async with app, MockShop(plans, hosts=HOSTS, on_request=served) as shop:
        shops = Shops(service)
        ids = await add(app, shops, shop, count, monkeypatch)
        # Even a few kills on each engine are at all points together.
        answer = await live_and_die(place.url, tmp_path, ENGINES.index(engine) * LIVES)
        assert answer["ends"] == {"killed": LIVES, "lived on": 1}
        assert answer["half_stored"] == []
        # As the schedule does every five minutes.
        await Agreement(service).settle_all()
        await headrace.JobOrchestrator(app).run_until_idle()
        lines = journal.read(tmp_path / "journal.jsonl")
        assert judge_pages(lines) == []
        ends: Counter[str] = Counter()
        for run_id in ids:
            row, job = await service.repository.get(run_id), await app.get(run_id)
            assert row is not None
            assert str(row.status) == str(job.status), f"{row} {job}"
            ends[job.status] += 1
            files = await app.artifacts.list(run_id)
            assert all(each.path.split("/")[1] == run_id for each in files)
            if job.status == "completed":
                assert {each.layer for each in files} == LAYERS, run_id
                for each in files:
                    assert await app.artifacts.get(each.path, sha256=each.sha256)
        stored = Counter(line.job for line in lines if line.event == "stored")
        assert all(each == 1 for each in stored.values()), "stored once"
        assert stored.keys() == {each for each in ids if each in stored}
        assert ends["completed"], "or nothing of it was looked at"
        assert await app.engine.audit() == []
    died = Counter(line.stage for line in lines if line.event == "died")
    pages = Counter(line.event for line in lines)
    print(
        f"{engine}: {LIVES} kills at {len(died)} points, {count} shops "
        f"({dict(ends)}), {pages['served']} requests, {pages['kept']} answers kept"
    )


def served(target: str) -> None:
    journal.write(Line(event="served", stage=target))


def judge_pages(lines: list[Line]) -> list[str]:
    """Return the pages that were fetched after they had been kept."""
    kept: set[str] = set()
    wrong = []
    for line in lines:
        if line.stage == "/robots.txt":
            continue  # the same for all shops of a host, and kept by each
        if line.event == "kept":
            kept.add(line.stage)
        elif line.event == "served" and line.stage in kept:
            wrong.append(line.stage)
    return wrong


async def add(
    app: headrace.App, shops: Shops, shop: MockShop, count: int, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Ask for shops on several hosts; some of them may be tried twice only."""
    make, ids = app.job, []
    for number in range(count):

        def frail(*args: Any, number: int = number, **options: Any) -> Any:
            job = make(*args, **options)
            if number % FRAIL == FRAIL - 1:
                job.max_attempts = 2
            return job

        with monkeypatch.context() as patch:
            patch.setattr(app, "job", frail)
            host = HOSTS[number % len(HOSTS)]
            ids.append((await shops.add(shop.url(f"/s{number}/", host))).job_id)
    return ids


async def live_and_die(url: str, folder: Path, first: int) -> dict[str, Any]:
    """Run the program with many lives to its end."""
    here = Path(__file__).parent
    path = os.pathsep.join(str(each) for each in [ROOT / "src", here.parent / "src", ROOT, here])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "spots_support.shop_lives"),
        *(url, str(LIVES), str(first)),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    answer: dict[str, Any] = msgspec.json.decode(output)
    return answer
