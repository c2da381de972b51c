"""Jobs over HTTP, on every engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.model.ids import new_id
from headrace.model.job import Job
from headrace.model.status import State
from headrace.server.responses import Answers
from headrace.task.redact import Redactor
from tests.server.conftest import problem, run_jobs
from tests.support.processes import until


async def hand_in(client: httpx.AsyncClient, task: str = "add", **fields: Any) -> dict[str, Any]:
    """Hand in a job, and answer it as the server shows it."""
    if task == "add":
        fields.setdefault("args", {"a": 1, "b": 2})
    response = await client.post("/jobs", json={"task": task, **fields})
    assert response.status_code == 202, response.text
    job: dict[str, Any] = response.json()
    return job


async def test_a_job_is_taken_in_run_and_shown(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    response = await client.post("/jobs", json={"task": "add", "args": {"a": 1, "b": 2}})
    assert response.status_code == 202
    job = response.json()
    assert response.headers["location"] == f"/jobs/{job['job_id']}"
    assert (job["status"], job["source"], job["args"]) == ("pending", "api", {"a": 1, "b": 2})
    await run_jobs(app)
    shown = (await client.get(response.headers["location"])).json()
    assert (shown["status"], shown["result"]) == ("completed", 3)
    stored = await app.get(job["job_id"])
    assert shown.pop("stages") == []
    assert shown == msgspec.json.decode(msgspec.json.encode(stored.to_dict()))


async def test_every_option_reaches_the_job(client: httpx.AsyncClient, app: headrace.App) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    options: dict[str, Any] = {
        "queue": "other",
        "priority": 7,
        "run_at": due.isoformat(),
        "key": "once",
        "lane": "number:{a}",
        "retries": 7,
        "timeout": 12.5,
        "meta": {"trace": "abc"},
    }
    shown = await hand_in(client, **options)
    job = await app.get(shown["job_id"])
    assert (job.queue, job.priority, job.key, job.lane) == ("other", 7, "once", "number:1")
    assert (job.status, job.run_at, job.meta) == ("scheduled", due, {"trace": "abc"})
    assert (job.max_attempts, job.timeout) == (8, 12.5)
    assert (shown["max_attempts"], shown["timeout"], shown["width"]) == (8, 12.5, 1)
    later = await hand_in(client, delay=60)
    assert (await app.get(later["job_id"])).status == "scheduled"
    # Null is as the task has it; only a time limit can be none.
    plain = await hand_in(client, retries=None, lane=None)
    assert (plain["max_attempts"], plain["timeout"]) == (4, 600)
    assert (await hand_in(client, retries=2.0, timeout=None))["timeout"] is None
    for bad in ({"retries": -1}, {"retries": 1.5}, {"retries": 10_001}, {"timeout": 0}):
        body = {"task": "add", "args": {"a": 1, "b": 2}, **bad}
        told = problem(await client.post("/jobs", json=body), 422, "invalid-input")
        assert told["field"] == next(iter(bad))


async def test_an_idempotency_key_makes_one_job(client: httpx.AsyncClient) -> None:
    body = {"task": "add", "args": {"a": 1, "b": 2}}
    headers = {"Idempotency-Key": "order-1"}
    answers = await asyncio.gather(
        *(client.post("/jobs", json=body, headers=headers) for _ in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert answers[0].json()["key"] == "order-1"
    clash = await client.post("/jobs", json={**body, "key": "another"}, headers=headers)
    assert problem(clash, 409, "key-conflict")["field"] == "key"


async def test_a_batch_is_stored_whole_or_not_at_all(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    good = [{"task": "add", "args": {"a": n, "b": 0}} for n in range(50)]
    bad = {"task": "add", "args": {"a": "x", "b": 0}}
    refused = problem(await client.post("/jobs/batch", json={"jobs": [*good, bad]}), 422)
    assert refused["field"] == "jobs[50].args"
    unknown = problem(
        await client.post("/jobs/batch", json={"jobs": [*good, {"task": "nope"}]}), 422
    )
    assert unknown["field"] == "jobs[50]"
    assert (await app.list()).jobs == []
    stored = await client.post("/jobs/batch", json={"jobs": good})
    assert stored.status_code == 202
    assert [job["args"]["a"] for job in stored.json()["jobs"]] == list(range(50))
    assert stored.json()["created"] == [True] * 50
    assert len((await app.list(limit=100)).jobs) == 50
    keyed = [{"task": "add", "args": {"a": n, "b": 0}, "key": f"k{n % 3}"} for n in range(4)]
    twice = (await client.post("/jobs/batch", json={"jobs": keyed})).json()
    assert twice["created"] == [True, True, True, False]
    assert twice["jobs"][3]["job_id"] == twice["jobs"][0]["job_id"]
    again = (await client.post("/jobs/batch", json={"jobs": keyed})).json()
    assert again["created"] == [False] * 4
    problem(await client.post("/jobs/batch", json={"jobs": []}), 422)
    problem(await client.post("/jobs/batch", json={"jobs": good * 21}), 422)


async def test_lists_are_paged_and_filtered(client: httpx.AsyncClient) -> None:
    await client.post(
        "/jobs/batch", json={"jobs": [{"task": "add", "args": {"a": n, "b": 0}} for n in range(25)]}
    )
    lane = (await hand_in(client, "speak", args={"user_id": "ada"}))["job_id"]
    scan = {"platform": "web", "document": {"title": "x"}}
    await hand_in(client, "scan", args=scan, key="k1")
    seen: list[int] = []
    cursor = None
    while True:
        params: dict[str, Any] = {"task": "add", "limit": 10}
        params |= {"cursor": cursor} if cursor else {}
        page = (await client.get("/jobs", params=params)).json()
        seen += [job["args"]["a"] for job in page["jobs"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == list(reversed(range(25)))

    async def ids(**params: Any) -> list[str]:
        answer = await client.get("/jobs", params=params)
        assert answer.status_code == 200, answer.text
        return [job["job_id"] for job in answer.json()["jobs"]]

    assert len(await ids(status=["pending", "running"])) == 27
    assert await ids(status="failed") == []
    assert await ids(lane="user:ada") == [lane]
    assert len(await ids(queue=["scans"], key="k1", source="api")) == 1
    assert len(await ids(task=["scan", "speak"])) == 2
    hour = timedelta(hours=1)
    now = datetime.now(UTC)
    assert await ids(since=(now + hour).isoformat()) == []
    assert len(await ids(since=(now - hour).isoformat(), until=(now + hour).isoformat())) == 27
    assert await ids(until="0001-01-01T00:00:00+14:00") == []
    assert len(await ids(until="9999-12-31T23:59:59-14:00", limit=100)) == 27


async def test_a_result_can_be_waited_for(client: httpx.AsyncClient, app: headrace.App) -> None:
    job_id = (await hand_in(client))["job_id"]
    early = await client.get(f"/jobs/{job_id}/result")
    assert (early.status_code, early.json()["status"]) == (202, "pending")
    waiting = asyncio.create_task(client.get(f"/jobs/{job_id}/result", params={"timeout": 30}))
    await run_jobs(app)
    done = await waiting
    assert (done.status_code, done.json()) == (200, {"result": 3})
    failed = (await hand_in(client, "broken"))["job_id"]
    await run_jobs(app)
    told = problem(await client.get(f"/jobs/{failed}/result"), 409, "job-failed")
    assert "it broke" in told["detail"]
    problem(await client.get(f"/jobs/{new_id()}/result?timeout=1"), 404, "job-not-found")
    problem(await client.get(f"/jobs/{job_id}/result?timeout=61"), 422)


async def test_jobs_are_cancelled_and_retried(client: httpx.AsyncClient) -> None:
    job_id = (await hand_in(client))["job_id"]
    problem(await client.post(f"/jobs/{job_id}/retry"), 409, "job-conflict")
    cancelled = await client.post(f"/jobs/{job_id}/cancel", json={"reason": "not needed"})
    assert cancelled.status_code == 200
    assert cancelled.json()["status"] == "cancelled"
    assert cancelled.json()["error_message"] == "not needed"
    problem(await client.post(f"/jobs/{job_id}/cancel"), 409, "job-conflict")
    again = await client.post(f"/jobs/{job_id}/retry")
    assert (again.status_code, again.json()["status"]) == (200, "pending")


async def test_many_jobs_are_steered_by_a_filter(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    batch = [{"task": "add", "args": {"a": n, "b": 0}} for n in range(600)]
    await client.post("/jobs/batch", json={"jobs": batch})
    other = (await hand_in(client, "broken"))["job_id"]
    body: dict[str, Any] = {"action": "cancel", "filter": {"task": ["add"]}, "dry_run": True}
    counted = (await client.post("/jobs/bulk", json=body)).json()
    assert (counted["matched"], counted["changed"], len(counted["ids"])) == (600, 0, 100)
    body["dry_run"] = False
    done = (await client.post("/jobs/bulk", json=body)).json()
    assert (done["matched"], done["changed"]) == (600, 600)
    assert (await app.get(other)).status == "pending"
    back = {"action": "retry", "filter": {"status": ["cancelled"], "queue": ["default"]}}
    done = (await client.post("/jobs/bulk", json=back)).json()
    assert (done["matched"], done["changed"]) == (600, 600)
    empty = problem(await client.post("/jobs/bulk", json={"action": "cancel", "filter": {}}), 422)
    assert empty["field"] == "filter"


async def test_queues_are_paused_and_resumed(client: httpx.AsyncClient, app: headrace.App) -> None:
    job_id = (await hand_in(client))["job_id"]
    paused = await client.post("/queues/default/pause")
    shown = paused.json()
    assert (shown["queue"], shown["paused"], shown["paused_by"]) == ("default", True, "local")
    [queue] = (await client.get("/queues")).json()["queues"]
    assert (queue["name"], queue["paused"], queue["ready"]) == ("default", True, 1)
    reasons = (await client.get(f"/jobs/{job_id}/why")).json()["reasons"]
    assert "paused" in reasons[0]
    await run_jobs(app)
    assert (await app.get(job_id)).status == "pending"
    await client.post("/queues/default/resume")
    await run_jobs(app)
    assert (await app.get(job_id)).status == "completed"


async def test_stages_and_files_are_shown(client: httpx.AsyncClient, app: headrace.App) -> None:
    args = {"platform": "web", "document": {"title": "Report"}}
    job_id = (await hand_in(client, "scan", args=args))["job_id"]
    await run_jobs(app)
    entries = (await client.get(f"/jobs/{job_id}/entries")).json()["entries"]
    assert [(entry["kind"], entry["name"]) for entry in entries] == [
        ("artifact", "bronze/page.html"),
        ("stage", "reading"),
    ]
    assert entries[1]["body"]["value"] == "Report"
    [file] = (await client.get(f"/jobs/{job_id}/artifacts")).json()["artifacts"]
    assert (file["layer"], file["name"], file["size"]) == ("bronze", "page.html", 8)
    got = await client.get(f"/jobs/{job_id}/artifacts/bronze/page.html")
    assert got.content == b"<p>hello"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment")
    missing = await client.get(f"/jobs/{job_id}/artifacts/gold/page.html")
    problem(missing, 404, "artifact-not-found")


async def test_what_runs_now_is_told_in_the_agreed_shape(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    running = (await hand_in(client, "slow", queue="platform-1"))["job_id"]
    await hand_in(client, queue="platform-2")
    async with headrace.JobOrchestrator(app, queues=["platform-1"]) as orchestrator:
        await until(lambda: _status(app, running, "running"))
        answer = (await client.get("/api/v2/jobs/running")).json()
        await orchestrator.stop(grace=0)
    [job] = answer["data"].pop("running")
    assert answer == {
        "success": True,
        "data": {
            "queued": {"platform-1": 0, "platform-2": 1},
            "summary": {"running_count": 1, "queued_count": 1},
        },
    }
    assert job.keys() == {"platform", "job_id", "workflow_id", "started_at", "elapsed_seconds"}
    assert (job["platform"], job["job_id"], job["workflow_id"]) == ("platform-1", running, None)
    assert type(job["elapsed_seconds"]) is int
    assert 0 <= job["elapsed_seconds"] < 60


async def _status(app: headrace.App, job_id: str, status: str) -> bool:
    return (await app.get(job_id)).status == status


async def test_lanes_workers_and_tasks_are_listed(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    args = {"platform": "web", "document": {"title": "x"}}
    first = (await hand_in(client, "scan", args=args))["job_id"]
    await hand_in(client, "scan", args=args)
    [lane] = (await client.get("/lanes", params={"queue": "scans"})).json()["lanes"]
    assert (lane["lane"], lane["waiting"], lane["holders"]) == ("platform:web", 1, [first])
    assert (await client.get("/lanes", params={"queue": "default"})).json()["lanes"] == []
    async with headrace.JobOrchestrator(app, queues=["nothing"]):
        [worker] = (await client.get("/workers")).json()["workers"]
        assert (worker["alive"], worker["queues"]) == (True, ["nothing"])
    tasks = {task["name"]: task for task in (await client.get("/tasks")).json()["tasks"]}
    assert tasks.keys() == app.tasks.keys()
    assert tasks["add"]["description"] == "Add two numbers."
    assert tasks["add"]["arguments"]["required"] == ["a", "b"]
    assert tasks["scan"]["arguments"]["$defs"]["Document"]["required"] == ["title"]
    assert tasks["speak"]["policy"]["lane"] == {
        "template": "user:{user_id}",
        "width": 3,
        "hold": False,
    }


@pytest.mark.parametrize("path", ["", "/result", "/why", "/entries", "/artifacts", "/events"])
async def test_an_unknown_job_is_not_found(local: httpx.AsyncClient, path: str) -> None:
    told = problem(await local.get(f"/jobs/{new_id()}{path}"), 404, "job-not-found")
    assert "no job has the id" in told["detail"]
    problem(await local.get(f"/jobs/not-an-id{path}"), 422, "invalid-input")


def test_an_answer_has_the_shape_of_to_dict() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    job = Job(
        id=new_id(),
        task="t",
        queue="q",
        state=State.FAILED,
        args_json=b'{"a":"\xc3\xa9"}',
        created_at=moment,
        run_at=moment,
        log=b'{"attempt":1,"token":1,"outcome":"failed","worker":"w","ended_at":'
        b'"2026-01-02T03:04:05Z","failure":{"type":"E","message":"m"}}',
        meta_json=b'{"x":1}',
    )
    shown = msgspec.json.encode(Answers(Redactor()).job(job))
    assert shown == msgspec.json.encode(job.to_dict())


async def test_a_page_of_large_jobs_ends_early(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    text = "x" * 300_000
    jobs = [local_app.tasks["speak"].job(user_id="ada", text=text) for _ in range(60)]
    await local_app.enqueue_many(jobs)
    seen: list[str] = []
    cursor = None
    sizes = []
    while True:
        params: dict[str, Any] = {"limit": 1_000} | ({"cursor": cursor} if cursor else {})
        answer = await local.get("/jobs", params=params)
        sizes.append(len(answer.content))
        seen += [job["job_id"] for job in answer.json()["jobs"]]
        cursor = answer.json()["cursor"]
        if cursor is None:
            break
    assert seen == [job.id for job in reversed(jobs)]
    assert len(sizes) > 1
