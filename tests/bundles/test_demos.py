"""What `make up` shows: the demos of all bundles in one process do their work, and are served."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from headrace_ingest import demo as ingest
from headrace_scanner.platforms import SHOPS
from headrace_spots.mock_shop.plans import DEMO as SPOTS
from tests.support.processes import Process, Processes, until

# An idle machine needs much less; others may be at work on this one.
LIMIT = 240.0
# The list of each bundle, and how many of it its demo makes; all of them end as completed. There is
# a scan of each shop, three more, three that are compared, and one of a shop that nobody knows.
MADE = {
    "ingest": ("documents", len(ingest.made_up()) + len(ingest.real())),
    "speech": ("jobs", 2),
    "spots": ("jobs", len(SPOTS)),
    "scanner": ("scans", len(SHOPS) + 3 + 3 + 1),
}


@pytest.mark.timeout(600)
async def test_the_demos_of_all_bundles_complete_and_are_shown(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        up = processes.headrace(
            *("up", "--bundle", ",".join(MADE), "--port", "0", "--json"),
            # Shops in the same process need no rest between two products.
            HEADRACE_SCANNER_DELAY_SECONDS="0",
        )
        address = await until(lambda: address_of(up), "its first line", LIMIT)
        async with httpx.AsyncClient(base_url=address or "", timeout=LIMIT) as client:
            try:
                await until(lambda: is_over(client), "the work of the demos", LIMIT)
            except AssertionError as error:
                raise AssertionError(f"{error}: {await seen(client)}\n{up.said[-5_000:]}") from None
            for name in MADE:
                page = await client.get(f"/{name}/", headers={"Accept": "text/html"})
                assert page.status_code == 200
                assert page.headers["content-type"].startswith("text/html")
                assert "</html>" in page.text
            # What is broken in the tour is meant to be.
            failed = (await client.get("/jobs", params={"status": "failed"})).json()["jobs"]
            assert [job["task"] for job in failed] == ["tour.doomed"]
        children = psutil.Process(up.pid).children(recursive=True)
        up.terminate()
        assert await up.ended(60.0) == 0, up.said
        assert psutil.wait_procs(children, timeout=30)[1] == []
    # Errors of jobs are told as events; nothing else has gone wrong.
    logged = [line for line in up.said.splitlines() if not line.startswith('{"event"')]
    assert "Traceback" not in "\n".join(logged)
    # Where it was started, and nowhere else.
    assert (tmp_path / "headrace.db").is_file()


def address_of(up: Process) -> str | None:
    """Return where it serves, once it says so."""
    assert up.code is None, up.said
    first, line, _ = up.said.partition("\n")
    return str(json.loads(first)["api"]) if line else None


async def is_over(client: httpx.AsyncClient) -> bool:
    """Whether all that the demos have made is completed, and no job is left."""
    if await seen(client) != {name: {"completed": count} for name, (_, count) in MADE.items()}:
        return False
    queues = (await client.get("/queues")).json()["queues"]
    return not any(
        queue[each] for queue in queues for each in ("scheduled", "waiting", "ready", "running")
    )


async def seen(client: httpx.AsyncClient) -> dict[str, Counter[Any]]:
    """Return what there is of each bundle, by its status."""
    found = {}
    for name, (what, _) in MADE.items():
        body = (await client.get(f"/{name}/{what}", params={"limit": 100})).json()
        found[name] = Counter(each["status"] for each in body[what])
    return found
