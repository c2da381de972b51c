"""A key for one queue finds no trace of another: on no route, stream, error or count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.admin.bulk import KIND
from headrace.admin.bulk import find as find_bulk
from headrace.admin.keys import create_key
from headrace.breakers.by_hand import open_by_hand
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.monitor.findings.failures import failure_counts
from headrace.workflows.model import Workflow
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs
from tests.server.test_guard import ROUTES, VALUES

# What only queue "b" has: in names, arguments, results, errors, files.
TRACE = "quince"
# Everything with this word in it is of queue "a".
OWN = "apple"


def an_app(folder: Path) -> headrace.App:
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))

    @app.task(f"{OWN}.work", queue="a", retries=0)
    async def work(word: str = "", fail: bool = False) -> str:
        if fail:
            raise ValueError(f"{OWN} failed")
        return f"{OWN} {word}"

    @app.task(f"{OWN}.open", queue="a", retries=0)
    async def open_file(path: str) -> int:
        return len((folder / "files" / path).read_bytes())

    @app.task(f"{OWN}.wait", queue="a")
    async def wait(ctx: headrace.Context) -> Any:
        return await ctx.wait("go")

    @app.task(f"{TRACE}.work", queue="b", retries=0, lane=f"{TRACE}:{{word}}")
    async def others(ctx: headrace.Context, word: str = TRACE, fail: bool = False) -> str:
        await ctx.artifacts.put("page.txt", TRACE.encode())
        if fail:
            raise ValueError(f"{TRACE} failed")
        return TRACE

    mixed = app.workflow(f"{OWN}-mixed", queue="a", params={"fail": False})
    first = mixed.step("first", f"{OWN}.work", {"word": "x"})
    mixed.step("second", f"{TRACE}.work", {"fail": mixed.params.fail}, needs=[first])
    own = app.workflow(f"{OWN}-flow", queue="a")
    own.step("only", f"{OWN}.work", {"word": "x"})
    foreign = app.workflow(f"{TRACE}-flow", queue="b")
    foreign.step("only", f"{TRACE}.work", {})
    return app


class Store:
    """Two queues with jobs of every kind, and a key for one of them."""

    def __init__(self, app: headrace.App, client: httpx.AsyncClient, key: str) -> None:
        self.app, self.client, self.headers = app, client, bearer(key)
        self.own: Job
        self.foreign: Job
        self.mixed: Job
        self.flow: Job

    async def fill(self) -> None:
        app = self.app
        self.own = await app.enqueue(f"{OWN}.work", {"word": "hello"})
        await app.enqueue(f"{OWN}.work", {"fail": True})
        self.foreign = await app.enqueue(f"{TRACE}.work", {})
        await app.enqueue(f"{TRACE}.work", {"fail": True})
        self.mixed = await app.workflows.run(f"{OWN}-mixed")
        await app.workflows.run(f"{OWN}-mixed", {"fail": True})
        self.flow = await app.workflows.run(f"{OWN}-flow")
        await app.workflows.run(f"{TRACE}-flow")
        await run_jobs(app)
        # Some are left to wait.
        await app.enqueue(f"{TRACE}.work", {}, key=TRACE)
        await app.enqueue(f"{OWN}.wait", {})
        # Limits of both.
        for queue, word in (("a", OWN), ("b", TRACE)):
            await app.set_rate(queue, "5/s", lane=word)
            await app.hold(queue, lane=word, duration=3_600, reason=word, by=word)
            opened = await open_by_hand(app.engine, (queue, word), 60.0, by=word, reason=word)
            assert opened is not None

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self.client.get(path, params=params, headers=self.headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers | headers)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with an_app(tmp_path) as app:
        key = await a_key(app, "admin", queues=["a"])
        async with client_of(app) as client:
            store = Store(app, client, key)
            await store.fill()
            yield store


async def test_no_route_tells_of_another_queue(store: Store) -> None:
    ids = [store.own.id, store.foreign.id, store.mixed.id, store.flow.id]
    looked = 0
    for method, path, _ in ROUTES:
        if path.endswith("events"):
            continue  # see below
        for job_id in ids if "{job_id}" in path else [""]:
            names = VALUES | {"job_id": job_id, "workflow_id": f"{OWN}-mixed", "name": "a"}
            answer = await store.client.request(
                method, path.format_map(names), headers=store.headers,
                json=None if method == "GET" else {},
            )  # fmt: skip
            if path == "/queues/{name}/pause":
                await store.post("/queues/a/resume")
            told = answer.text.replace(str(store.client.base_url), "")
            assert TRACE not in told, (method, path, told)
            assert '"b"' not in told, (method, path, told)
            looked += 1
    assert looked > len(ROUTES)


async def test_lists_counts_and_searches_are_of_its_own_queue(store: Store) -> None:
    listed = (await store.get("/jobs", limit=1000)).json()["jobs"]
    assert {job["queue"] for job in listed} == {"a"}
    # The steps of both runs are there, but neither run: they tell what steps in b returned.
    assert store.mixed.id not in {job["job_id"] for job in listed}
    assert store.flow.id in {job["job_id"] for job in listed}
    brief = (await store.get("/jobs", limit=1000, fields="row")).json()["jobs"]
    assert [job["job_id"] for job in brief] == [job["job_id"] for job in listed]
    for term in (TRACE, "second", "args.workflow.id=apple-mixed", "meta.workflow_id=apple-mixed"):
        found = (await store.get("/jobs", search=term)).json()
        assert not [each for each in found["jobs"] if each["task"] == "headrace.workflow"], term
    groups = (await store.get("/errors")).json()
    assert {group["task"] for group in groups["groups"]} == {f"{OWN}.work"}
    # A run whose steps are elsewhere is a job of its own queue: it counts there, and no more.
    depths = (await store.get("/queues")).json()["queues"]
    assert [each["name"] for each in depths] == ["a"]
    names = [each["name"] for each in (await store.get("/tasks")).json()["tasks"]]
    assert names == [f"{OWN}.open", f"{OWN}.wait", f"{OWN}.work"]
    workflows = [each["id"] for each in (await store.get("/workflows")).json()["workflows"]]
    assert workflows == [f"{OWN}-flow"]
    for noun in ("rates", "breakers"):
        assert [each["lane"] for each in (await store.get(f"/{noun}")).json()[noun]] == [OWN], noun


async def test_a_run_whose_steps_are_elsewhere_does_not_exist(store: Store) -> None:
    run = store.mixed.id
    for path in ("", "/result", "/why", "/entries", "/artifacts", "/events"):
        problem(await store.get(f"/jobs/{run}{path}"), 404, "job-not-found")
    for path in ("/cancel", "/retry", "/copy", "/events/go"):
        problem(await store.post(f"/jobs/{run}{path}"), 404, "job-not-found")
    problem(await store.get(f"/workflows/runs/{run}"), 404)
    problem(await store.post(f"/workflows/runs/{run}/retry"), 404)
    problem(await store.get(f"/workflows/{OWN}-mixed"), 404, "unknown-workflow")
    body = {"workflow_id": f"{OWN}-mixed"}
    problem(await store.post("/api/v2/workflows/execute", body), 404, "unknown-workflow")
    # One with all its steps in its queue does.
    assert (await store.get(f"/workflows/runs/{store.flow.id}")).json()["status"] == "completed"


async def test_bulk_actions_leave_runs_alone(store: Store) -> None:
    body = {"action": "retry", "filter": {"status": ["completed", "failed"]}}
    counted = (await store.post("/jobs/bulk", body | {"dry_run": True})).json()
    assert set(counted["by_task"]) == {f"{OWN}.work"}
    done = (await store.post("/jobs/bulk", body)).json()
    assert store.mixed.id not in done["ids"]
    assert (await store.app.get(store.mixed.id)).status == "completed"
    started = (await store.post("/jobs/bulk", body | {"background": True})).json()
    record = await store.app.bulk_action(started["id"])
    assert record.filter.queue == ["a"]


async def test_bulk_actions_of_others_tell_of_no_hidden_run(store: Store) -> None:
    app, failed = store.app, JobFilter(queues=("a",), statuses=(Status.FAILED,))
    runs = (await app.list(msgspec.structs.replace(failed, tasks=("headrace.workflow",)))).jobs
    made = await app.start_bulk("retry", failed)
    await app.stop_bulk(made.id)
    # Going on with it would retry the run, with its step in the other queue.
    problem(await store.post(f"/bulk/{made.id}/resume"), 403)
    problem(await store.client.delete(f"/bulk/{made.id}", headers=store.headers), 403)
    assert [(await app.get(run.id)).status for run in runs] == ["failed"]
    record, version = await find_bulk(app.engine, made.id)
    record.ids = [store.own.id, runs[0].id]
    await app.engine.record_put(KIND, made.id, msgspec.json.encode(record), version=version)
    assert (await store.get(f"/bulk/{made.id}")).json()["ids"] == [store.own.id]
    [listed] = (await store.get("/bulk")).json()["bulk"]
    assert listed["ids"] == [store.own.id]


async def test_bulk_actions_show_keys_as_they_were_given(store: Store) -> None:
    made = (await store.post("/jobs", {"task": f"{OWN}.work", "key": "k: 1"})).json()["job_id"]
    wanted = {"key": "k: 1", "status": ["pending", "cancelled"]}
    body = {"action": "cancel", "filter": wanted, "background": True}
    started = (await store.post("/jobs/bulk", body)).json()
    shown = (await store.get(f"/bulk/{started['id']}")).json()
    for bulk in (started, shown):
        assert bulk["filter"]["key"] == "k: 1"
        found = (await store.client.get(bulk["jobs"], headers=store.headers)).json()["jobs"]
        assert [job["job_id"] for job in found] == [made]


async def test_failures_of_runs_are_not_counted(store: Store) -> None:
    app, now = store.app, store.app.clock.utcnow() + timedelta(seconds=1)
    counts = await failure_counts(app.engine, now, ["a"])
    # Of its own task, not of the run whose step in the other queue failed.
    assert (counts.recent, counts.most) == (1, (f"{OWN}.work", "ValueError"))
    assert (await failure_counts(app.engine, now, [])).recent == 4


async def test_a_task_of_another_queue_cannot_be_enqueued(store: Store) -> None:
    for queue in (None, "a", "b"):
        body: dict[str, Any] = {"task": f"{TRACE}.work", "args": {}, "queue": queue}
        told = problem(await store.post("/jobs", body), 422, "unknown-task")
        # What it says is the caller's own word; and what is known is its own.
        assert f"{OWN}.work" in told["detail"]
        problem(await store.post("/jobs/batch", {"jobs": [body]}), 422)
    before = len((await store.app.list()).jobs)
    near = {"task": "quinc.work", "args": {}}
    assert TRACE not in (await store.post("/jobs", near)).text
    assert len((await store.app.list()).jobs) == before


async def test_files_of_another_queue_cannot_be_named(store: Store) -> None:
    files = await store.client.get(
        f"/jobs/{store.foreign.id}/artifacts", headers=bearer(await a_key(store.app, "read"))
    )
    path = files.json()["artifacts"][0]["path"]
    gone = f"gold/{'0198' + store.foreign.id[4:]}/1/x"
    ways = [
        path,
        f"./{path}",
        f"../files/{path}",
        path.upper(),
        path.replace("-", "%2D"),
        store.foreign.id,
        store.foreign.id.replace("-", ""),
        gone,
    ]
    for way in ways:
        body = {"task": f"{OWN}.open", "args": {"path": way}}
        told = problem(await store.post("/jobs", body), 403, "forbidden")
        assert told["field"] == "args"
        problem(await store.post("/jobs/batch", {"jobs": [body]}), 403)
    problem(await store.post("/jobs", {"task": f"{OWN}.work", "meta": {"x": [path]}}), 403)
    body = {"args": {"word": path}}
    problem(await store.post(f"/jobs/{store.own.id}/copy", body), 403)
    [waiting] = (await store.get("/jobs", task=f"{OWN}.wait")).json()["jobs"]
    problem(await store.post(f"/jobs/{waiting['job_id']}/events/go", {"file": path}), 403)
    run = {"workflow_id": f"{OWN}-flow", "params": {"path": path}}
    problem(await store.post("/api/v2/workflows/execute", run), 403)
    # Its own, and what is the id of no job, it may name.
    for word in (store.own.id, f"gold/{store.own.id}/1/x", "0" * 8 + store.own.id[8:]):
        made = await store.post("/jobs", {"task": f"{OWN}.work", "args": {"word": word}})
        assert made.status_code == 202


async def test_the_stream_of_all_jobs_has_only_its_own(store: Store) -> None:
    seen: list[dict[str, Any]] = []
    async with store.client.stream("GET", "/events", headers=store.headers) as response:
        lines = response.aiter_lines()
        assert (await anext(lines)).startswith("retry")
        await store.app.workflows.run(f"{OWN}-mixed")
        await store.app.enqueue(f"{TRACE}.work", {})
        last = await store.app.enqueue(f"{OWN}.work", {"word": "last"}, key="mine")
        await run_jobs(store.app)
        async with asyncio.timeout(30):
            async for line in lines:
                if line.startswith('data: {"job'):
                    seen.append(json.loads(line.removeprefix("data: ")))
                    if seen[-1]["job_id"] == last.id and seen[-1]["status"] == "completed":
                        break
    assert {each["queue"] for each in seen} == {"a"}
    assert {each["task"] for each in seen} == {f"{OWN}.work"}
    assert TRACE not in json.dumps(seen)


async def test_the_document_has_only_its_own_tasks(store: Store) -> None:
    told = (await store.get("/openapi.json")).text
    assert TRACE not in told
    assert f"{OWN}.work" in told
    whole = await store.client.get("/openapi.json", headers=bearer(await a_key(store.app, "read")))
    assert TRACE in whole.text


async def test_lanes_of_others_take_no_room(store: Store) -> None:
    for number in range(5):
        await store.app.enqueue(f"{TRACE}.work", {"word": f"{TRACE}{number}"})
    await store.app.enqueue(f"{OWN}.work", {}, lane=OWN)
    found = (await store.get("/lanes", limit=1)).json()["lanes"]
    assert [each["lane"] for each in found] == [OWN]


async def test_a_run_with_steps_elsewhere_is_not_named_as_the_holder_of_a_lane(
    store: Store,
) -> None:
    """It has a place in a lane of queue a, but what it does there is not for this key."""
    steps = [{"id": "only", "task": f"{TRACE}.work"}]
    laned = {"id": f"{OWN}-laned", "queue": "a", "lane": OWN, "steps": steps}
    store.app.workflows.add(msgspec.convert(laned, Workflow))
    run = await store.app.workflows.run(f"{OWN}-laned")
    waiting = await store.app.enqueue(f"{OWN}.work", {}, lane=OWN)
    [lane] = (await store.get("/lanes")).json()["lanes"]
    assert (lane["used"], lane["waiting"], lane["holders"]) == (1, 1, [])
    why = (await store.get(f"/jobs/{waiting.id}/why")).text
    assert "is held by another job" in why
    assert run.id not in why
    # Whoever may use both queues is told.
    both = bearer(await a_key(store.app, "read", queues=["a", "b"]))
    told = (await store.client.get("/lanes", headers=both)).json()["lanes"]
    assert [each["holders"] for each in told if each["queue"] == "a"] == [[run.id]]
    assert run.id in (await store.client.get(f"/jobs/{waiting.id}/why", headers=both)).text


async def test_workers_show_neither_other_queues_nor_tasks(store: Store) -> None:
    async with headrace.JobOrchestrator(store.app, queues=["a", "b"]):
        [worker] = (await store.get("/workers")).json()["workers"]
    assert worker["queues"] == ["a"]
    assert worker["tasks"] is None


async def test_another_queue_is_refused_as_one_that_is_not_there(store: Store) -> None:
    for queue in ("b", "no-such-queue"):
        for path in ("/jobs", "/jobs/count", "/lanes", "/errors", "/metrics/series", "/events"):
            told = problem(await store.get(path, queue=queue), 403, "forbidden")
            assert told["detail"] == f"this key may not use queue {queue!r}"
        problem(await store.post(f"/queues/{queue}/pause"), 403)


async def test_keys_of_two_queues_see_both(store: Store) -> None:
    _, text = await create_key(store.app, name="both", scope="read", queues=["a", "b"])
    answer = await store.client.get(f"/workflows/runs/{store.mixed.id}", headers=bearer(text))
    assert answer.json()["steps"][1]["output"] == TRACE
