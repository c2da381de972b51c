"""Every change over HTTP is written down; the list of routes that make one is the real one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import headrace
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.server.auth import audit
from headrace.server.auth.guard import Caller
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs
from tests.server.test_guard import ROUTES
from tests.support.processes import until

ADD = {"task": "add", "args": {"a": 1, "b": 1}}
CHANGES = {
    ("POST", "/jobs"): "jobs.create",
    ("POST", "/jobs/batch"): "jobs.create",
    ("POST", "/jobs/bulk"): "jobs.cancel",
    ("POST", "/jobs/{job_id}/cancel"): "job.cancel",
    ("POST", "/jobs/{job_id}/retry"): "job.retry",
    ("POST", "/jobs/{job_id}/events/{event}"): "job.signal",
    ("POST", "/queues/{name}/pause"): "queue.pause",
    ("POST", "/queues/{name}/resume"): "queue.resume",
    ("PUT", "/schedules/{name}"): "schedule.put",
    ("POST", "/schedules/{name}/enable"): "schedule.enable",
    ("POST", "/schedules/{name}/disable"): "schedule.disable",
    ("POST", "/schedules/{name}/trigger"): "schedule.trigger",
    ("DELETE", "/schedules/{name}"): "schedule.remove",
    ("POST", "/dead-letters/{letter_id}/replay"): "dead-letter.replay",
    ("DELETE", "/dead-letters/{letter_id}"): "dead-letter.remove",
    ("POST", "/api/v2/workflows/execute"): "workflow.execute",
    ("POST", "/workflows/runs/{job_id}/retry"): "workflow.retry",
    ("POST", "/artifacts/keep"): "artifact.keep",
    ("POST", "/artifacts/release"): "artifact.release",
    ("PUT", "/destinations/{name}"): "destination.put",
    ("POST", "/destinations/{name}/enable"): "destination.enable",
    ("POST", "/destinations/{name}/disable"): "destination.disable",
    ("POST", "/destinations/{name}/rotate"): "destination.rotate",
    ("POST", "/destinations/{name}/test"): "destination.test",
    ("DELETE", "/destinations/{name}"): "destination.remove",
    ("POST", "/keys"): "key.create",
    ("DELETE", "/keys/{key_id}"): "key.revoke",
}


def test_no_route_that_changes_something_is_left_out() -> None:
    assert {(method, path) for method, path, _ in ROUTES if method != "GET"} == set(CHANGES)


async def test_every_route_that_changes_something_writes_it_down(local_app: headrace.App) -> None:
    made = await a_key(local_app)
    async with client_of(local_app, made) as client:
        expected: dict[str, str] = {}

        async def change(method: str, path: str, body: object = None, **values: str) -> Any:
            where = path.format_map(values)
            answer = await client.request(method, where, json=body)
            assert answer.is_success, answer.text
            expected[CHANGES[method, path]] = next(iter(values.values()), "")
            return answer.json() if answer.content else None

        first = (await change("POST", "/jobs", ADD))["job_id"]
        await change("POST", "/jobs/batch", {"jobs": [ADD, ADD]})
        await change("POST", "/jobs/{job_id}/events/{event}", 1, job_id=first, event="approved")
        await change("POST", "/jobs/{job_id}/cancel", {"reason": "enough"}, job_id=first)
        await change("POST", "/jobs/{job_id}/retry", job_id=first)
        await change("POST", "/jobs/bulk", {"action": "cancel", "filter": {"task": ["add"]}})
        for verb in ("pause", "resume"):
            await change("POST", f"/queues/{{name}}/{verb}", name="q")

        nightly = {"expression": "0 3 * * *", "task": "add", "params": {"a": 1, "b": 2}}
        await change("PUT", "/schedules/{name}", nightly, name="nightly")
        for verb in ("disable", "enable"):
            await change("POST", f"/schedules/{{name}}/{verb}", name="nightly")
        await change("POST", "/schedules/{name}/trigger", name="nightly")
        await change("DELETE", "/schedules/{name}", name="nightly")

        replayed, removed = await _two_letters(local_app, client)
        await change("POST", "/dead-letters/{letter_id}/replay", letter_id=replayed)
        await change("DELETE", "/dead-letters/{letter_id}", letter_id=removed)

        asked = {"workflow_id": "sums", "params": {"a": 1}}
        begun = await change("POST", "/api/v2/workflows/execute", asked)
        await run_jobs(local_app)
        run = begun["data"]["job_id"]
        await change("POST", "/workflows/runs/{job_id}/retry", {"from": "end"}, job_id=run)

        put = await local_app.artifacts.put("a.txt", b"hello")
        claim = {"path": put.path, "owner": "tests"}
        await change("POST", "/artifacts/keep", claim)
        await change("POST", "/artifacts/release", claim)

        hook = {"kind": "webhook", "options": {"url": "https://crm.example.com/hooks"}}
        await change("PUT", "/destinations/{name}", hook, name="crm")
        for verb in ("disable", "enable", "rotate", "test"):
            await change("POST", f"/destinations/{{name}}/{verb}", name="crm")
        await change("DELETE", "/destinations/{name}", name="crm")

        other = (await change("POST", "/keys", {"name": "second"}))["id"]
        await change("DELETE", "/keys/{key_id}", key_id=other)

        entries: list[dict[str, Any]] = []

        async def all_written() -> bool:
            entries[:] = (await client.get("/audit?limit=100")).json()["entries"]
            return {entry["action"] for entry in entries} == set(CHANGES.values())

        await until(all_written)
    targets = {entry["action"]: entry["target"] for entry in entries}
    assert {action: target for action, target in expected.items() if target} == {
        action: targets[action] for action, target in expected.items() if target
    }
    assert {entry["who"] for entry in entries} == {"test admin"}
    assert all(entry["key_id"] in made for entry in entries)


async def test_what_is_written_down_is_read_in_pages(local: httpx.AsyncClient) -> None:
    job_id = (await local.post("/jobs", json=ADD)).json()["job_id"]
    await local.post("/jobs/batch", json={"jobs": [ADD] * 30})
    await local.post(f"/jobs/{job_id}/cancel", json={"reason": "enough"})
    found: list[dict[str, Any]] = []

    async def all_written() -> bool:
        found[:] = (await local.get("/audit?limit=100")).json()["entries"]
        return bool(sum(entry.get("count", 1) for entry in found) == 31 + 1)

    await until(all_written)
    cancel = next(entry for entry in found if entry["action"] == "job.cancel")
    assert (cancel["target"], cancel["who"]) == (job_id, "local")
    assert cancel["detail"] == {"reason": "enough"}
    first = (await local.get("/audit?limit=1")).json()
    rest = (await local.get("/audit", params={"cursor": first["cursor"]})).json()
    assert [*first["entries"], *rest["entries"]] == found
    assert rest["cursor"] is None
    problem(await local.get("/audit?cursor=nonsense"), 422)


async def test_what_was_refused_is_not_written_down(local_app: headrace.App) -> None:
    weak = await a_key(local_app, "read")
    strong = await a_key(local_app)
    async with client_of(local_app) as client:
        problem(await client.post("/queues/q/pause", headers=bearer(weak)), 403)
        problem(await client.delete("/schedules/none", headers=bearer(strong)), 404)
        assert (await client.get("/audit", headers=bearer(strong))).json()["entries"] == []


async def test_the_log_of_changes_is_bounded(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_RECORDS", 20)
    monkeypatch.setattr(audit, "TRIM_EVERY", 10)
    async with client_of(local_app) as client:
        for _ in range(45):
            await client.post("/queues/q/pause")
        shown = (await client.get("/audit?limit=1000")).json()["entries"]
    assert 20 <= len(shown) <= 30


async def test_both_lines_of_the_log_are_bounded(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_RECORDS", 5)
    monkeypatch.setattr(audit, "TRIM_EVERY", 2)
    log, caller = audit.AuditLog(local_app), Caller(name="somebody", scope="admin")
    for _ in range(20):
        log.enqueued(caller, "add", "1")
        await log.changed(caller, "queue.pause", "q")
        await log._write_all()
    await log.close()
    keys = [record.key for record in await local_app.engine.record_list(audit.KIND)]
    for line in (audit.CHANGE, audit.ENQUEUE):
        assert sum(key.startswith(line) for key in keys) <= 5 + 2, line


async def _two_letters(app: headrace.App, client: httpx.AsyncClient) -> tuple[str, str]:
    body = b'{"handler_name": "add", "params": {"a": 1, "b": 2}}'
    messages = [Message(body=body, topic="orders", key=f"kafka:orders:0:{n}") for n in range(2)]
    await DeadLetters(app).keep(
        "kafka", [RejectedMessage(each, "Odd", "it was odd") for each in messages]
    )
    letters = (await client.get("/dead-letters")).json()["dead_letters"]
    first, second = sorted(letter["id"] for letter in letters)
    return first, second
