"""The summary and the groups of errors over HTTP: who sees what, and what is hidden."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import headrace
from headrace.client import Client
from headrace.server.listen import listening
from tests.server.conftest import a_key, bearer, client_of, run_jobs
from tests.support.processes import until


async def test_the_summary_says_what_is_wrong(client: httpx.AsyncClient, app: headrace.App) -> None:
    await app.enqueue("add", {"a": 1, "b": 2})
    answer = await client.post(
        "/queues/default/pause", json={"reason": "provider is down", "for": 600}
    )
    paused = answer.json()
    assert (paused["paused_by"], paused["paused_reason"]) == ("local", "provider is down")
    found: dict[str, Any] = {}
    findings: dict[str, Any] = {}

    async def told() -> bool:
        # It may be a second old.
        found.update((await client.get("/summary")).json())
        findings.update({each["kind"]: each for each in found["findings"]})
        return {"queue.paused", "queue.no-worker"} <= set(findings)

    await until(told)
    assert "is paused by local since " in findings["queue.paused"]["detail"]
    assert findings["queue.paused"]["target"] == {"page": "queue", "query": {"name": "default"}}
    [queue] = found["queues"]
    assert queue["paused_until"] == paused["paused_until"]
    [queue] = (await client.get("/queues")).json()["queues"]
    assert queue["paused_reason"] == "provider is down"
    assert (await client.post("/queues/default/resume")).json() == {
        "queue": "default",
        "paused": False,
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"for": 60, "until": "2090-01-01T00:00:00Z"}, "until"),
        ({"until": "2020-01-01T00:00:00Z"}, "has passed"),
        ({"until": "2090-01-01T00:00:00"}, "until"),
        ({"for": -1}, "for"),
        ({"reason": ""}, "reason"),
        ({"reason": "two\nlines"}, "reason"),
        ({"because": "x"}, "because"),
    ],
)
async def test_a_pause_that_cannot_be_is_refused(
    local: httpx.AsyncClient, local_app: headrace.App, body: dict[str, object], field: str
) -> None:
    answer = await local.post("/queues/mail/pause", json=body)
    assert answer.status_code in (400, 409, 422)
    assert field in answer.text
    assert await local_app.queues() == []


async def test_a_key_for_some_queues_sees_only_its_own(local_app: headrace.App) -> None:
    await local_app.enqueue("add", {"a": 1, "b": 2}, queue="mine")
    await local_app.enqueue("broken", {}, queue="theirs")
    await local_app.pause("theirs")
    admin = await a_key(local_app)
    mine = await a_key(local_app, scope="read", queues=["mine"])
    async with client_of(local_app, admin) as client:

        async def told() -> bool:
            return "queue.paused" in (await client.get("/summary")).text

        await until(told)
        assert "theirs" in (await client.get("/summary")).text
        seen = await client.get("/summary", headers=bearer(mine))
        assert seen.status_code == 200
        assert "theirs" not in seen.text
        assert [each["name"] for each in seen.json()["queues"]] == ["mine"]
        refused = await client.get("/errors", params={"queue": "theirs"}, headers=bearer(mine))
        assert refused.status_code == 403


async def test_errors_are_grouped_without_what_is_hidden(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    for secret in ("hunter2hunter", "swordfish99"):
        await app.enqueue("broken", {"password": secret})
    await app.enqueue("broken", {})
    await run_jobs(app)
    answer = await client.get("/errors", params={"task": "broken"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["looked_at"], found["complete"]) == (3, True)
    assert sum(each["count"] for each in found["groups"]) == 3
    assert "it broke" in answer.text
    assert "cannot log in with [redacted]" in answer.text
    for part in ("hunter", "swordfish"):
        assert part not in answer.text
    assert (await client.get("/errors", params={"since": "yesterday"})).status_code == 422
    assert (await client.get("/errors", params={"tusk": "x"})).status_code == 422


async def test_a_client_has_the_same_verbs(local_app: headrace.App) -> None:
    await local_app.enqueue("broken", {})
    await run_jobs(local_app)
    async with listening(local_app, host="127.0.0.1", port=0) as url, Client(url) as client:
        paused = await client.pause("default", reason="later", duration=60)
        assert paused.paused_reason == "later"
        assert (await client.queues())[0].paused_until == paused.paused_until
        assert (await client.resume("default")).paused is False
        assert (await client.summary()).findings == []
        [group] = (await client.errors(tasks=["broken"])).groups
        assert (group.count, group.message) == (1, "it broke")
        assert (await client.errors(since=paused.paused_at)).groups == []
