"""A key with a user acts for that user: its lane, its arguments, its steps, its jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace
from headrace.model.job import Job, JobFilter
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs


def an_app(folder: Path) -> headrace.App:
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))

    @app.task(lane=headrace.Lane("user:{user_id}", width=2), retries=0)
    async def speak(user_id: str, text: str = "", fail: bool = False) -> str:
        if fail:
            raise ValueError(text)
        return f"{user_id}: {text}"

    @app.task
    async def number(user_id: int) -> int:
        return user_id

    @app.task
    async def plain(x: int = 0) -> int:
        return x

    @app.task
    async def wait(ctx: headrace.Context, user_id: str) -> Any:
        return await ctx.wait("go")

    says = app.workflow("says", params={"who": "", "text": "hi"})
    says.step("say", speak, {"user_id": says.params.who, "text": says.params.text})
    greets = app.workflow("greets", params={"text": "hi"})
    greets.step("greet", "speak", {"text": greets.params.text, "user_id": "ada"})
    every = app.workflow("every", params={"all": list})
    every.step("each", speak, {"user_id": every.item}, each=every.params.all)
    fails = app.workflow("fails", params={"all": list})
    fails.step("each", speak, {"user_id": fails.item, "fail": True}, each=fails.params.all)
    return app


class Ada:
    """Somebody with the key of user ada, among jobs of others."""

    def __init__(self, app: headrace.App, client: httpx.AsyncClient, key: str) -> None:
        self.app, self.client, self.headers = app, client, bearer(key)

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers)

    async def enqueue(self, task: str, **fields: Any) -> httpx.Response:
        return await self.post("/jobs", {"task": task, **fields})

    async def run(self, workflow: str, **params: Any) -> Job:
        body = {"workflow_id": workflow, "params": params}
        answer = await self.post("/api/v2/workflows/execute", body)
        assert answer.status_code == 202, answer.text
        await run_jobs(self.app)
        return await self.app.get(answer.json()["data"]["job_id"])


@pytest.fixture
async def ada(tmp_path: Path) -> AsyncIterator[Ada]:
    async with an_app(tmp_path) as app:
        key = await a_key(app, "write", user="ada")
        async with client_of(app) as client:
            yield Ada(app, client, key)


async def test_a_request_cannot_leave_its_lane(ada: Ada) -> None:
    for lane in ("user:eve", "user:{text}", "anywhere"):
        told = problem(await ada.enqueue("speak", args={"text": "eve"}, lane=lane), 403)
        assert told["field"] == "lane"
        batch = {"jobs": [{"task": "speak"}, {"task": "speak", "lane": lane}]}
        problem(await ada.post("/jobs/batch", batch), 403)
        problem(await ada.enqueue("plain", lane=lane), 403)
    assert (await ada.app.list()).jobs == []
    made = await ada.enqueue("speak", lane="user:ada")
    assert (made.json()["lane"], made.json()["width"]) == ("user:ada", 2)
    copied = await ada.post(f"/jobs/{made.json()['job_id']}/copy", {"lane": "user:eve"})
    problem(copied, 403)


async def test_a_request_cannot_cancel_jobs_of_others_by_a_full_lane(ada: Ada) -> None:
    for when_full in ("replace", "cancel_running"):
        shared = headrace.Lane("shop:{shop}", when_full=when_full)
        own = headrace.Lane("shop:{user_id}", when_full=when_full)

        @ada.app.task(f"{when_full}.shared", lane=shared)
        async def load(shop: str) -> None: ...

        @ada.app.task(f"{when_full}.own", lane=own)
        async def load_own(user_id: str) -> None: ...

        told = problem(await ada.enqueue(f"{when_full}.shared", args={"shop": "a"}), 403)
        assert told["field"] == "task"
        assert "{user_id}" in told["remedy"]
        assert (await ada.enqueue(f"{when_full}.own")).status_code == 202


async def test_a_workflow_cannot_run_a_step_as_somebody_else(ada: Ada) -> None:
    run = await ada.run("says", who="eve")
    assert run.status == "failed"
    assert "acts for user 'ada' only" in (run.error or "")
    assert (await ada.run("says", who="ada")).result == {"say": "ada: hi"}
    assert (await ada.run("greets")).result == {"greet": "ada: hi"}
    assert (await ada.run("every", all=["ada", "eve"])).status == "failed"
    made = (await ada.app.engine.list_jobs(JobFilter(tasks=("speak",)))).jobs
    assert {job.args["user_id"] for job in made} == {"ada"}
    assert {job.meta["user"] for job in made} == {"ada"}
    # Without a key of a user, a workflow does what it says.
    plain = await ada.app.workflows.run("says", {"who": "eve"})
    await run_jobs(ada.app)
    assert (await ada.app.get(plain.id)).result == {"say": "eve: hi"}


async def test_only_jobs_of_its_user_can_be_changed(ada: Ada) -> None:
    app = ada.app
    eve = bearer(await a_key(app, "write", user="eve"))
    body = {"task": "speak", "args": {"text": "x", "fail": True}}
    theirs = (await ada.client.post("/jobs", json=body, headers=eve)).json()["job_id"]
    waits = (await ada.client.post("/jobs", json={"task": "wait"}, headers=eve)).json()["job_id"]
    execute = "/api/v2/workflows/execute"
    begun = await ada.client.post(execute, json={"workflow_id": "greets"}, headers=eve)
    run = begun.json()["data"]["job_id"]
    nobodys = (await app.enqueue("plain", {})).id
    named = (await app.enqueue("speak", {"user_id": "eve", "fail": True})).id
    await run_jobs(app)
    for job_id in (theirs, nobodys, named, waits, run):
        for verb in ("cancel", "retry", "copy"):
            told = problem(await ada.post(f"/jobs/{job_id}/{verb}"), 403, "forbidden")
            assert "'ada' only" in told["detail"]
    problem(await ada.post(f"/jobs/{waits}/events/go", 1), 403)
    problem(await ada.post(f"/workflows/runs/{run}/retry"), 403)
    path = {"path": f"gold/{theirs}/1/x", "owner": "ada"}
    problem(await ada.post("/artifacts/keep", path | {"reason": "mine"}), 403)
    problem(await ada.post("/artifacts/release", path), 403)
    bulk: dict[str, Any] = {"action": "cancel", "filter": {"task": ["wait"]}}
    problem(await ada.post("/jobs/bulk", bulk), 403)
    problem(await ada.post("/jobs/bulk", bulk | {"background": True}), 403)
    assert (await app.get(waits)).status == "scheduled"
    # It sees them all the same: that is what queues are for.
    assert (await ada.client.get(f"/jobs/{theirs}", headers=ada.headers)).status_code == 200


async def test_jobs_of_its_user_can_be_changed(ada: Ada) -> None:
    own = (await ada.enqueue("speak", args={"fail": True, "text": "x"})).json()["job_id"]
    by_code = (await ada.app.enqueue("speak", {"user_id": "ada", "fail": True})).id
    run = await ada.run("greets")
    [step] = (await ada.app.engine.list_jobs(JobFilter(parent=run.id))).jobs
    for job_id in (own, by_code, step.id):
        assert (await ada.post(f"/jobs/{job_id}/retry")).status_code == 200
        assert (await ada.post(f"/jobs/{job_id}/cancel")).status_code == 200
    assert (await ada.post(f"/workflows/runs/{run.id}/retry", {"from": "greet"})).status_code == 200


async def test_a_step_of_a_run_of_others_is_not_retried(ada: Ada) -> None:
    # The run would go on as a whole, and with it the failed steps of others.
    run = await ada.app.workflows.run("fails", {"all": ["ada", "eve"]})
    await run_jobs(ada.app)
    steps = (await ada.app.engine.list_jobs(JobFilter(parent=run.id))).jobs
    [own] = [job for job in steps if job.args["user_id"] == "ada"]
    told = problem(await ada.post(f"/jobs/{own.id}/retry"), 403)
    assert run.id in told["detail"]
    problem(await ada.post(f"/jobs/{own.id}/retry", {"from": "x"}), 403)
    assert {job.status for job in await ada.app.engine.get([job.id for job in steps])} == {"failed"}
    assert (await ada.app.get(run.id)).status == "failed"


async def test_a_user_can_be_a_number(ada: Ada) -> None:
    seven = bearer(await a_key(ada.app, "write", user="7"))
    made = await ada.client.post("/jobs", json={"task": "number"}, headers=seven)
    assert made.json()["args"] == {"user_id": 7}
    own = made.json()["job_id"]
    assert (await ada.client.post(f"/jobs/{own}/cancel", headers=seven)).status_code == 200
    problem(await ada.post(f"/jobs/{own}/retry"), 403)


async def test_an_admin_key_of_a_user_changes_nothing_of_all_users(ada: Ada) -> None:
    admin = bearer(await a_key(ada.app, "admin", user="ada"))
    for method, path, body in (
        ("POST", "/keys", {"name": "eve", "scope": "write", "user": "eve"}),
        ("DELETE", "/keys/" + "0" * 16, None),
        ("POST", "/queues/default/pause", None),
        ("PUT", "/schedules/x", {"expression": "* * * * *", "task": "plain"}),
        ("POST", "/schedules/x/trigger", None),
        ("POST", "/dead-letters/x/replay", None),
    ):
        told = problem(await ada.client.request(method, path, json=body, headers=admin), 403)
        assert "all users" in told["detail"]
    assert (await ada.client.get("/keys", headers=admin)).status_code == 200
