"""Workflows over HTTP: looked at, run, followed, begun again."""

from __future__ import annotations

import httpx
import pytest

import headrace
from headrace.model.job import JobFilter
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs
from tests.support.processes import until

EXECUTE = "/api/v2/workflows/execute"


async def test_a_workflow_is_run_and_followed(app: headrace.App, client: httpx.AsyncClient) -> None:
    answer = await client.post(EXECUTE, json={"workflow_id": "sums", "params": {"a": 1}})
    assert answer.status_code == 202
    begun = answer.json()
    assert begun["success"] is True
    run = begun["data"]["job_id"]
    assert begun["data"] == {
        "job_id": run,
        "workflow_id": "sums",
        "version": 1,
        "status": "pending",
    }
    view = (await client.get(f"/workflows/runs/{run}")).json()
    assert {step["id"]: step["status"] for step in view["steps"]} == dict.fromkeys(
        ("first", "second", "end"), "pending"
    )
    await run_jobs(app)
    view = (await client.get(f"/workflows/runs/{run}")).json()
    assert (view["status"], view["result"]) == ("completed", {"end": 6})
    assert [(step["status"], step["jobs"]) for step in view["steps"]] == [
        ("completed", 1),
        ("completed", 3),
        ("completed", 1),
    ]
    running = (await client.get("/api/v2/jobs/running")).json()
    assert running["data"]["summary"] == {"running_count": 0, "queued_count": 0}


async def test_a_run_is_among_what_runs_by_the_id_that_its_caller_has(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    long = app.workflow("long")
    long.step("one", "slow")
    long.step("two", "slow")
    async with headrace.JobOrchestrator(app) as orchestrator:
        begun = (await client.post(EXECUTE, json={"workflow_id": "long"})).json()["data"]

        async def both_run() -> bool:
            wanted = JobFilter(statuses=(headrace.Status.RUNNING,), tasks=("slow",))
            return len((await app.list(wanted)).jobs) == 2

        await until(both_run)
        found = (await client.get("/api/v2/jobs/running")).json()["data"]
        await orchestrator.stop(grace=0)
    [running] = found["running"]
    assert (running["job_id"], running["workflow_id"]) == (begun["job_id"], "long")
    assert type(running["elapsed_seconds"]) is int
    assert found["summary"]["running_count"] == 1


async def test_a_run_is_begun_again_from_a_step(
    local_app: headrace.App, local: httpx.AsyncClient
) -> None:
    asked = {"workflow_id": "sums", "params": {"a": 1}, "key": "once", "version": 1}
    first = (await local.post(EXECUTE, json=asked)).json()["data"]["job_id"]
    assert (await local.post(EXECUTE, json=asked)).json()["data"]["job_id"] == first
    early = await local.post(f"/workflows/runs/{first}/retry", json={})
    assert early.status_code == 409
    await run_jobs(local_app)
    again = await local.post(f"/workflows/runs/{first}/retry", json={"from": "second"})
    assert again.json() == {"job_id": first, "steps": ["second", "end"]}
    await run_jobs(local_app)
    assert (await local.get(f"/jobs/{first}")).json()["status"] == "completed"
    nowhere = await local.post(f"/workflows/runs/{first}/retry", json={"from": "nowhere"})
    assert nowhere.status_code == 422
    assert "it has: first, second, end" in nowhere.json()["detail"]


async def test_workflows_are_listed_and_shown(local: httpx.AsyncClient) -> None:
    [listed] = (await local.get("/workflows")).json()["workflows"]
    shown = (await local.get("/workflows/sums")).json()
    assert listed == shown
    assert [step["id"] for step in shown["steps"]] == ["first", "second", "end"]
    assert (await local.get("/workflows/sums?version=7")).status_code == 404
    missing = await local.get("/workflows/other")
    assert missing.status_code == 404
    assert 'known: "sums"' in missing.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"workflow_id": "none"}, 404, "unknown workflow"),
        ({"workflow_id": "sums"}, 422, "needs the parameter 'a' (integer)"),
        ({"workflow_id": "sums", "params": {"a": "x"}}, 422, "must be of type integer, got 'x'"),
        ({"workflow_id": "sums", "params": {"a": 1, "c": 1}}, 422, "has no parameter 'c'"),
        ({"workflow_id": "sums", "params": {"a": 1}, "version": 2}, 404, "has no version 2"),
        ({"workflow_id": "sums", "parms": {"a": 1}}, 422, "parms"),
        ({}, 422, "workflow_id"),
    ],
)
async def test_bad_requests_are_told_and_store_nothing(
    local: httpx.AsyncClient, body: object, status: int, said: str
) -> None:
    answer = await local.post(EXECUTE, json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]
    assert (await local.get("/jobs")).json()["jobs"] == []


async def test_a_job_that_is_no_run_is_not_followed(
    local_app: headrace.App, local: httpx.AsyncClient
) -> None:
    job = await local_app.enqueue("add", {"a": 1, "b": 2})
    for answer in (
        await local.get(f"/workflows/runs/{job.id}"),
        await local.post(f"/workflows/runs/{job.id}/retry", json={}),
    ):
        assert answer.status_code == 404
        assert "not a workflow" in answer.json()["detail"]


async def test_a_key_for_some_queues_runs_only_what_stays_there(local_app: headrace.App) -> None:
    elsewhere = await a_key(local_app, "write", queues=["scans"])
    here = await a_key(local_app, "write", queues=["default"])
    async with client_of(local_app) as client:
        body = {"workflow_id": "sums", "params": {"a": 1}}
        refused = await client.post(EXECUTE, json=body, headers=bearer(elsewhere))
        assert refused.status_code == 404
        assert (await client.get("/workflows", headers=bearer(elsewhere))).json()["workflows"] == []
        begun = await client.post(EXECUTE, json=body, headers=bearer(here))
        assert begun.status_code == 202
        run = begun.json()["data"]["job_id"]
        seen = await client.get(f"/workflows/runs/{run}", headers=bearer(elsewhere))
        assert seen.status_code == 404
        assert (await local_app.get(run)).meta["key_id"]


async def test_a_run_with_steps_in_other_queues_is_not_for_a_key_of_its_own(
    local_app: headrace.App,
) -> None:
    mixed = local_app.workflow("mixed")
    mixed.step("far", "add", {"a": 1, "b": 2}, queue="vault")
    run = await local_app.workflows.run("mixed")
    some, every = await a_key(local_app, "write", queues=["default"]), await a_key(local_app)
    path = f"/workflows/runs/{run.id}"
    async with client_of(local_app) as client:
        assert (await client.get(path, headers=bearer(every))).status_code == 200
        problem(await client.get(path, headers=bearer(some)), 404)
        problem(await client.post(f"{path}/retry", headers=bearer(some)), 404)


async def test_a_run_may_have_a_priority_of_its_own(
    app: headrace.App, client: httpx.AsyncClient
) -> None:
    asked = {"workflow_id": "sums", "params": {"a": 1}}
    for body, priority in ((asked, 0), ({**asked, "priority": 7}, 7)):
        run = (await client.post(EXECUTE, json=body)).json()["data"]["job_id"]
        assert (await app.get(run)).priority == priority
    problem(await client.post(EXECUTE, json={**asked, "priority": "high"}), 422)
