"""Workers that die at every point of a run: row and job agree at rest, no product that was written
is asked for again, and what changed is written once.

The suite kills a few workers on each engine; `make scanner-kills` sixty.
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
from scanner_support.places import a_place
from scanner_support.scan_lives import make_app
from tests.crash import journal
from tests.crash.journal import Line
from tests.support.stores import ENGINES, Stores

from headrace_scanner.imports import ProductRow
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.mock_shops.server import Visit
from headrace_scanner.scanner import Scanner
from headrace_scanner.store.records import product_id_of

KILLS = int(os.environ.get("HEADRACE_TEST_SCANNER_KILLS", "12"))
"""How many in all, over the engines."""
LIVES = -(-KILLS // len(ENGINES))
PLATFORMS = ("hwahae", "musinsa")
PRODUCTS = 3
# A run is killed about so often before it is over.
KILLS_PER_RUN = 2
ROOT = Path(__file__).parents[4]


@pytest.mark.timeout(600 + LIVES * 30)
@pytest.mark.parametrize("engine", ENGINES)
async def test_rows_and_jobs_agree_wherever_workers_die(
    engine: str, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MockShops(on_visit=served) as shops:
        place = a_place(stores, engine, tmp_path, shops, s3=False)
        environment = {**place.environment, journal.VARIABLE: str(tmp_path / "journal.jsonl")}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        app, service = make_app(place.url)
        async with app:
            scanner = Scanner(service)
            runs = []
            for number in range(LIVES // KILLS_PER_RUN + 2):
                platform = PLATFORMS[number % len(PLATFORMS)]
                ids = [f"{number}-{each}" for each in range(PRODUCTS)]
                rows = [
                    ProductRow(
                        platform=platform,
                        product=each,
                        name=shops.look(platform, each).name,
                        price=shops.look(platform, each).price + 500.0,
                    )
                    for each in ids
                ]
                await scanner.add(rows, f"set {number}")
                runs.append((await scanner.scan(platform, set_name=f"set {number}")).job_id)
            # Even a few kills on each engine are at all points together.
            answer = await live_and_die(place.url, tmp_path, ENGINES.index(engine) * LIVES)
            assert answer["ends"] == {"killed": LIVES, "lived on": 1}
            assert answer["half_stored"] == []
            for run in runs:
                row, job = await service.scans.get(run), await app.get(run)
                assert row is not None
                assert (str(row.status), str(job.status)) == ("completed", "completed"), job.error
                assert (row.seen, row.changed) == (PRODUCTS, PRODUCTS)
                assert job.result["changes"] == {"price": PRODUCTS}
            assert len(await scanner.changes(limit=500)) == len(runs) * PRODUCTS
            assert await app.engine.audit() == []
    lines = journal.read(tmp_path / "journal.jsonl")
    assert judge_visits(lines) == []
    died = Counter(line.stage for line in lines if line.event == "died")
    count = Counter(line.event for line in lines)
    print(
        f"{engine}: {LIVES} kills at {len(died)} points, {len(runs)} runs, "
        f"{count['served']} requests for {len(runs) * PRODUCTS} products"
    )


def served(visit: Visit) -> None:
    product = product_id_of(visit.shop, visit.product)
    journal.write(Line(event="served", stage=product))


def judge_visits(lines: list[Line]) -> list[str]:
    """Return the products that were asked for after they had been written."""
    written: set[str] = set()
    wrong = []
    for line in lines:
        if line.event == "observed":
            written.add(line.stage)
        elif line.event == "served" and line.stage in written:
            wrong.append(line.stage)
    return wrong


async def live_and_die(url: str, folder: Path, first: int) -> dict[str, Any]:
    """Run the program with many lives to its end."""
    here = Path(__file__).parents[1]
    path = os.pathsep.join(str(each) for each in [ROOT / "src", here.parent / "src", ROOT, here])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scanner_support.scan_lives"),
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
