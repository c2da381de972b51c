"""A key for one queue gets the same answers from a store with another queue as from one without."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.workflows.model import Workflow
from tests.server.conftest import a_key, bearer, client_of, run_jobs
from tests.server.test_guard import ROUTES, VALUES
from tests.server.test_queue_bound_keys import OWN, TRACE, an_app
from tests.support.processes import until

# What differs between two stores by nature: ids, times, workers, how often a run was looked at.
NATURE = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?"
    r"|[\w.-]+-\d+-[0-9a-f]{6}\b|\b\d+\.\d+(e-\d+)?\b|127\.0\.0\.1:\d+"
    r'|"attempts":\[[^]]*\]|"token":\d+|"depth":(null|\{[^}]*\})'
)
HEADERS = {"date", "content-length"}
STATUSES = [status.value for status in Status]
ASKED: list[tuple[str, dict[str, str]]] = [
    *((path, {"status": status}) for path in ("/jobs", "/jobs/count") for status in STATUSES),
    ("/jobs", {"limit": "2"}),
    ("/jobs", {"search": "x"}),
    ("/jobs", {"task": "headrace.workflow"}),
    ("/jobs", {"fields": "row"}),
    ("/jobs/count", {"task": "headrace.workflow"}),
    ("/metrics/series", {"queue": "a"}),
    ("/lanes", {"queue": "a"}),
]


class Store:
    """A server over a store, asked by somebody with a key for queue a."""

    def __init__(self, app: headrace.App, client: httpx.AsyncClient, key: str) -> None:
        self.app, self.client, self.headers = app, client, bearer(key)
        self.jobs: list[str] = []

    async def own(self) -> None:
        """What is of queue a alone, and over."""
        done = await self.app.enqueue(f"{OWN}.work", {"word": "hello"})
        await self.app.enqueue(f"{OWN}.work", {"fail": True})
        flow = await self.app.workflows.run(f"{OWN}-flow")
        self.jobs = [done.id, flow.id]
        await run_jobs(self.app)

    async def others(self) -> None:
        """What is of queue b: of every status, in lanes, paused, with a bulk action."""
        app = self.app
        for number in range(7):
            await app.enqueue(f"{TRACE}.work", {"fail": number % 2 == 0})
        await app.workflows.run(f"{TRACE}-flow")
        await run_jobs(app)
        for number in range(5):
            await app.enqueue(f"{TRACE}.work", {"word": f"{TRACE}{number}"}, key=f"{TRACE}{number}")
        await app.pause("b", reason=TRACE)
        await app.start_bulk("retry", JobFilter(queues=("b",), statuses=(Status.FAILED,)))

    async def wait(self) -> None:
        """A job of queue a that waits behind whatever there is."""
        waiting = await self.app.enqueue(f"{OWN}.work", {}, lane=OWN, priority=3)
        self.jobs.append(waiting.id)

    async def ask(self, method: str, path: str, **options: Any) -> str:
        answer = await self.client.request(method, path, headers=self.headers, **options)
        headers = sorted(each for each in answer.headers.items() if each[0] not in HEADERS)
        return NATURE.sub("~", f"{answer.status_code} {headers}\n{answer.text}")

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.client.get(path, params=params, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def answers(self) -> dict[str, str]:
        """Every route that reads, each with the jobs of queue a; and what counts."""
        told: dict[str, str] = {}
        for method, path, _ in ROUTES:
            if method == "GET" and not path.endswith("/events"):
                for number, job_id in enumerate(self.jobs if "{job_id}" in path else [""]):
                    named = VALUES | {"job_id": job_id, "workflow_id": f"{OWN}-flow", "name": "a"}
                    told[f"{path} {number}"] = await self.ask(method, path.format_map(named))
        for path, params in ASKED:
            told[f"{path} {params}"] = await self.ask("GET", path, params=params)
        for status in STATUSES:
            body = {"action": "retry", "filter": {"status": [status]}, "dry_run": True}
            told[f"bulk {status}"] = await self.ask("POST", "/jobs/bulk", json=body)
        return told


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[list[Store]]:
    """Two servers over stores that are the same for now."""
    async with AsyncExitStack() as stack:
        made = []
        for name in ("without", "with"):
            (tmp_path / name).mkdir()
            app = await stack.enter_async_context(an_app(tmp_path / name))
            key = await a_key(app, "admin", queues=["a"])
            client = await stack.enter_async_context(client_of(app))
            made.append(Store(app, client, key))
            await made[-1].own()
        yield made


async def test_every_answer_is_the_same_with_another_queue_and_without(stores: list[Store]) -> None:
    without, with_ = stores
    await with_.others()
    for store in stores:
        await store.wait()
    # Some answers may be of half a second ago, and so of a moment before the last job; or of longer
    # ago, if it took a busy machine long to find them.
    end = time.monotonic() + 45
    while True:
        expected, told = await without.answers(), await with_.answers()
        assert len(told) > 60
        if told == expected or time.monotonic() > end:
            break
    for asked, answer in told.items():
        assert answer == expected[asked], asked


async def test_numbers_are_those_of_the_jobs_that_are_shown(stores: list[Store]) -> None:
    store = stores[1]
    await store.others()
    for fail in (False, True):
        await store.app.workflows.run(f"{OWN}-mixed", {"fail": fail})
    await headrace.JobOrchestrator(store.app, queues=["a"]).run_until_idle()
    # Two runs wait for steps in b, which is paused; and three have not begun, one for its lane.
    steps = [{"id": "only", "task": f"{TRACE}.work"}]
    laned = {"id": f"{OWN}-laned", "queue": "a", "lane": "busy", "steps": steps}
    store.app.workflows.add(msgspec.convert(laned, Workflow))
    for name in ("mixed", "laned", "laned"):
        await store.app.workflows.run(f"{OWN}-{name}")
    own = await store.app.workflows.run(f"{OWN}-flow")
    await store.wait()

    shown = (await store.get("/jobs", limit=1000))["jobs"]
    assert own.id in {job["job_id"] for job in shown}
    for status in STATUSES:
        count = (await store.get("/jobs/count", status=status))["count"]
        assert count == len([job for job in shown if job["status"] == status]), status
    assert (await store.get("/jobs/count"))["count"] == len(shown)
    assert (await store.get("/jobs/count", task="headrace.workflow"))["count"] == 2

    [queue] = (await store.get("/queues"))["queues"]
    assert [queue[name] for name in ("scheduled", "waiting", "ready", "running")] == [0, 0, 2, 0]

    async def fresh() -> bool:
        """A summary may be of half a second ago."""
        told = (await store.get("/summary"))["queues"]
        return [each["ready"] for each in told] == [2]

    await until(fresh, "a summary with two ready jobs")
    summary = await store.get("/summary")
    assert "2 pending jobs" in str(summary["findings"])
    running = (await store.get("/api/v2/jobs/running"))["data"]
    assert running["queued"] == {"a": 2}
    assert running["summary"]["queued_count"] == 2

    # Whoever may use both queues is told of all.
    both = Store(store.app, store.client, await a_key(store.app, "read", queues=["a", "b"]))
    [queue] = [each for each in (await both.get("/queues"))["queues"] if each["name"] == "a"]
    assert [queue["scheduled"], queue["waiting"], queue["ready"]] == [2, 1, 4]


async def test_the_age_of_the_oldest_job_is_of_one_that_is_shown(stores: list[Store]) -> None:
    store = stores[0]
    await store.app.workflows.run(f"{OWN}-mixed")
    [queue] = (await store.get("/queues"))["queues"]
    assert (queue["ready"], queue["oldest_age"]) == (0, None)
    await store.wait()
    [queue] = (await store.get("/queues"))["queues"]
    assert queue["ready"] == 1
    whole = await store.app.queues()
    [of_a] = [each for each in whole if each.name == "a"]
    assert of_a.oldest_age is not None
    assert 0 <= queue["oldest_age"] < of_a.oldest_age
