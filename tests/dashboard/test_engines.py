"""Every page on every engine: rendered over jobs of all kinds, without a browser."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from headrace.model.job import JobFilter
from headrace.model.schedules.schedule import Schedule
from headrace.model.status import Status
from headrace.model.views import JobCount
from headrace.monitor import cached_reads
from headrace.monitor.search import fingerprint_of
from headrace.server.dashboard.page import all_pages
from tests.conftest import ENGINES, Servers, store_url
from tests.dashboard.conftest import MakeSite, Site
from tests.dashboard.scenes import failed_jobs, lost_worker, unreachable
from tests.dashboard.test_intake import put
from tests.dashboard.visits import visitor
from tests.server.conftest import make_app, run_jobs
from tests.support.verbs import a_worker, claim

ODD = "foo/bar.baz?x#y<script>"
LATER = "later.x:y"


@pytest.mark.parametrize("name", ENGINES)
async def test_every_page_shows_a_filled_store(
    make_site: MakeSite, servers: Servers, tmp_path: Path, name: str
) -> None:
    async with make_app(store_url(name, servers, tmp_path), tmp_path) as app:
        site = await make_site(app)
        run = await app.workflows.run("sums", {"a": 1})
        await app.enqueue("broken")
        scan = await app.enqueue("scan", {"platform": "web", "document": {"title": "x"}})
        await run_jobs(app)
        failed = await failed_jobs(app.engine, "broken", unreachable(5))
        [job] = await app.engine.get(failed[:1])
        for number in range(4):
            await app.enqueue("speak", {"user_id": "u", "text": ODD * number})
        late = await app.enqueue("add", {"a": 1, "b": 2}, queue=LATER, delay=600.0)
        worker = await a_worker(app.engine, "busy")
        [running] = await claim(app.engine, worker, 1, ["default"])
        await lost_worker(app.engine, "gone")
        await app.pause(LATER, reason="<b>", until=app.clock.utcnow() + timedelta(hours=1))
        await app.schedules.add(
            Schedule(name="nightly", expression="0 3 * * *", task="add", params={"a": 1, "b": 2})
        )
        await put(app, ["orders/1?x"])
        bulk = await app.start_bulk("retry", JobFilter(statuses=(Status.TIMEOUT,)))
        mark = fingerprint_of(job)
        paths = {
            "/errors/group": [f"?task=broken&fingerprint={mark}"],
            "/jobs/bulk": ["?action=retry&status=failed", "?action=cancel&queue=default"],
            "/jobs": [
                "", "?status=failed&status=running", f"?fingerprint={mark}", "?search=10.0.0",
                f"?queue={LATER}",
            ],
            "/jobs/{job_id}": [scan.id, failed[0], running.id, late.id, run.id],
            "/jobs/{job_id}/copy": [failed[0], scan.id],
            "/workers/{id}": [worker],
            "/workflows/{workflow_id:path}": ["sums"],
            "/runs/{run_id}": [run.id],
            "/bulk/{bulk_id}": [bulk.id],
            "/queues/{name:path}": ["default", "mail", LATER],
            "/schedules/{name:path}": ["nightly"],
            "/tasks/{name:path}": ["add", "broken"],
            "/intake/letters/{letter_id:path}": [quote("orders/1?x", safe="")],
            "/schedule-preview": ["?expression=0+3+*+*+*&tz=Europe/Berlin"],
        }  # fmt: skip
        async with visitor(site) as visit:
            for each in all_pages():
                front, _, behind = each.path.partition("{")
                rest = behind.partition("}")[2]
                if "trial" in front:
                    continue
                for value in paths[each.path] if behind else paths.get(each.path, [""]):
                    text = await visit.get(f"{front}{value}{rest}")
                    assert "data-problem" not in text, (each.path, value)
                    assert "<script>alert" not in text
                    assert ODD not in text


async def test_what_a_page_has_told_is_not_counted_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, counted = site.app.engine, []
    await failed_jobs(engine, "broken", unreachable(60))
    await failed_jobs(engine, "broken", [("KeyError", "'a'")] * 3)
    await failed_jobs(engine, "broken", unreachable(60))
    count = engine.count_jobs

    async def counting(filter: JobFilter, **options: int) -> JobCount:
        counted.append(filter)
        return await count(filter, **options)

    monkeypatch.setattr(engine, "count_jobs", counting)
    monkeypatch.setattr(cached_reads, "TIMES", 1e9)  # however slow this machine is
    async with visitor(site) as visit:
        assert "3 jobs" in await visit.words("/jobs?error_type=KeyError")
        assert counted == []
        for _ in range(3):
            assert "120 jobs" in await visit.words("/jobs?error_type=ConnectionError")
        assert len(counted) == 1, "it was counted for each look"
