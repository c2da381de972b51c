"""Schedules and dead letters over HTTP, on every engine."""

from __future__ import annotations

import base64
from typing import Any

import httpx

import headrace
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from tests.server.conftest import a_key, bearer, client_of, problem

NIGHTLY = {
    "expression": "0 3 * * *",
    "task": "add",
    "params": {"a": 1, "b": 2},
    "tz": "Asia/Seoul",
    "allow_overlap": False,
}


async def test_a_schedule_is_made_changed_tried_and_removed(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    made = await client.put("/schedules/nightly", json=NIGHTLY)
    assert made.status_code == 200, made.text
    shown = made.json()
    assert (shown["words"], shown["tz"], shown["origin"]) == (
        "at 03:00 every day",
        "Asia/Seoul",
        "api",
    )
    assert len(shown["next"]) == 5
    assert shown["next"][0]["local"].endswith("03:00:00+09:00")
    changed = await client.put("/schedules/nightly", json=NIGHTLY | {"expression": "*/5 * * * *"})
    assert changed.json()["words"] == "every 5 minutes"
    assert [each["name"] for each in (await client.get("/schedules")).json()["schedules"]] == [
        "nightly"
    ]
    times = (await client.get("/schedules/nightly/next?count=3")).json()
    assert len(times["next"]) == 3
    off = await client.post("/schedules/nightly/disable")
    assert (off.json()["enabled"], off.json()["next"]) == (False, [])
    assert (await client.post("/schedules/nightly/enable")).json()["enabled"] is True
    job = await client.post("/schedules/nightly/trigger")
    assert job.status_code == 202
    assert (await app.get(job.json()["job_id"])).source == "api"
    problem(await client.post("/schedules/nightly/trigger"), 409, "job-conflict")
    forced = await client.post("/schedules/nightly/trigger", json={"force": True})
    assert forced.status_code == 202
    last = (await client.get("/schedules/nightly")).json()["last_runs"]
    assert [run["triggered"] for run in last] == [True, True]
    assert (await client.delete("/schedules/nightly")).json() == {
        "name": "nightly",
        "removed": True,
    }
    problem(await client.get("/schedules/nightly"), 404, "unknown-schedule")
    problem(await client.delete("/schedules/nightly"), 404, "unknown-schedule")


async def test_a_schedule_that_makes_no_sense_is_refused(local: httpx.AsyncClient) -> None:
    for change, words in (
        ({"expression": "every day"}, "is not valid"),
        ({"tz": "Seoul"}, "Asia/Seoul"),
        ({"task": "nope"}, "Unknown task"),
        ({"params": {"a": "x"}}, "it takes: a, b"),
        ({"missed": "some"}, "missed"),
        ({"nope": 1}, "nope"),
    ):
        told = problem(await local.put("/schedules/x", json=NIGHTLY | change), 422)
        assert words in f"{told['detail']} {told.get('field')}"
    assert (await local.get("/schedules")).json()["schedules"] == []
    for name in ("a b", "%00", "x" * 200):
        problem(await local.put(f"/schedules/{name}", json=NIGHTLY), 422)


async def set_aside(app: headrace.App, count: int = 1, **body: Any) -> None:
    refused = [
        RejectedMessage(
            Message(body=b'{"handler_name": "add"}', topic="orders", key=f"kafka:orders:0:{n}"),
            "InvalidArguments",
            "no arguments",
        )
        for n in range(count)
    ]
    await DeadLetters(app).keep("kafka", refused)


async def test_dead_letters_are_listed_shown_replayed_and_removed(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    await set_aside(app, 5)
    first = (await client.get("/dead-letters?limit=3")).json()
    rest = (await client.get("/dead-letters", params={"cursor": first["cursor"]})).json()
    ids = [each["id"] for each in first["dead_letters"] + rest["dead_letters"]]
    assert ids == [f"kafka:orders:0:{n}" for n in range(5)]
    assert rest["cursor"] is None
    assert "raw" not in first["dead_letters"][0]
    assert (await client.get("/dead-letters?topic=others")).json()["dead_letters"] == []
    shown = (await client.get(f"/dead-letters/{ids[0]}")).json()
    assert base64.b64decode(shown["raw"]) == b'{"handler_name": "add"}'
    # It lacks arguments still, so it stays.
    problem(await client.post(f"/dead-letters/{ids[0]}/replay"), 422)

    del app.tasks["add"]

    @app.task("add")
    async def add(a: int = 1, b: int = 1) -> int:
        return a + b

    replayed = await client.post(f"/dead-letters/{ids[0]}/replay")
    assert replayed.status_code == 202
    assert (await app.get(replayed.json()["job_id"])).task == "add"
    problem(await client.get(f"/dead-letters/{ids[0]}"), 404, "dead-letter-not-found")
    assert (await client.delete(f"/dead-letters/{ids[1]}")).json()["removed"] is True
    problem(await client.delete(f"/dead-letters/{ids[1]}"), 404)
    problem(await client.get("/dead-letters/%00"), 422)


async def test_a_key_for_some_queues_sees_neither(local_app: headrace.App) -> None:
    key = await a_key(local_app, queues=["q"])
    async with client_of(local_app) as client:
        for path in ("/schedules", "/schedules/x", "/dead-letters", "/dead-letters/x"):
            problem(await client.get(path, headers=bearer(key)), 403)


async def test_a_refusal_does_not_show_hidden_arguments(local: httpx.AsyncClient) -> None:
    body = {"expression": "* * * * *", "task": "broken", "params": {"password": ["hunter-22"]}}
    refused = await local.put("/schedules/x", json=body)
    assert refused.status_code == 422
    assert "hunter" not in refused.text
    long = {"password": "hunter-" * 100, "other": 1}
    refused = await local.put("/schedules/x", json=body | {"params": long})
    assert refused.status_code == 422
    assert "hunter" not in refused.text
