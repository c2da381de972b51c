"""A large site is crawled in bounded memory: it is not that of its pages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop

PAGES = int(os.environ.get("HEADRACE_TEST_SPOTS_PAGES", "500"))
KILOBYTE = 1024
# 195 MiB of pages in all, of which one is in memory at a time.
PADDING = 200_000 // PAGES * KILOBYTE
MOST_GROWTH = 80 * KILOBYTE * KILOBYTE


async def test_many_pages_take_the_memory_of_a_few(tmp_path: Path) -> None:
    here = Path(__file__).parent
    root = here.parents[2]
    path = os.pathsep.join(str(each) for each in [root / "src", here.parent / "src", root, here])
    plan = ShopPlan(slug="large", name="Large", pages=PAGES - 2, per_page=1, padding=PADDING)
    async with MockShop([plan]) as shop:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "spots_support.crawl_memory"),
            *(f"sqlite:///{tmp_path}/jobs.db", shop.url("/large/"), str(PAGES)),
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "HEADRACE_ARTIFACTS": str(tmp_path / "files")},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
    found = json.loads(output)
    assert found["run"]["status"] == "completed", found["run"]["error"]
    assert (found["run"]["pages"], found["run"]["reviews"]) == (PAGES, PAGES - 2)
    assert set(shop.visits.counts.values()) == {1}
    growth = found["most"] - found["before"]
    print(f"{PAGES} pages of {PADDING // KILOBYTE} KiB: {growth / KILOBYTE**2:.0f} MiB more")
    assert growth < MOST_GROWTH
