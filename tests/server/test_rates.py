"""Rates and holds over HTTP: seen and changed by those who may, refused with a remedy, audited."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

import headrace
from headrace.model.limits.rate import Rate
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs

HOSTILE = "host:<b>/é?&#%2F x"


async def audited(client: httpx.AsyncClient) -> list[tuple[str, str, dict[str, Any]]]:
    """What was changed, the oldest first: action, target and detail."""
    found = (await client.get("/audit")).json()["entries"]
    return [(each["action"], each["target"], each.get("detail", {})) for each in found[::-1]]


async def test_setting_holding_and_taking_back(app: headrace.App) -> None:
    key = await a_key(app)
    async with client_of(app, key) as client:
        lane = {"lane": HOSTILE}
        asked = {"rate": "10/m", "burst": 3}
        for _ in range(2):  # it may be repeated
            made = await client.put("/queues/scans/rate", params=lane, json=asked)
            assert made.status_code == 200, made.text
        view = made.json()
        assert (view["queue"], view["lane"], view["by_operator"]) == ("scans", HOSTILE, True)
        assert view["rate"] == {"count": 10, "per": 60, "burst": 3}
        assert (await client.get("/rates")).json()["rates"] == [view]
        held = await client.put(
            "/queues/scans/hold", params=lane, json={"for": 60, "reason": "they asked"}
        )
        told = held.json()
        assert (told["held_by"], told["held_reason"]) == ("test admin", "they asked")
        assert told["held_until"].endswith("Z")
        for _ in range(2):
            ended = await client.delete("/queues/scans/hold", params=lane)
            assert ended.json()["held_until"] is None
        for _ in range(2):
            removed = await client.delete("/queues/scans/rate", params=lane)
            assert (removed.json()["rate"], removed.json()["waiting"]) == (None, None)
        assert (await client.get("/rates")).json() == {"rates": [], "cursor": None}
        target = f"scans/{HOSTILE}"
        changes = await audited(client)
        assert [(action, to) for action, to, _ in changes] == [
            *[("rate.set", target)] * 2,
            ("rate.hold", target),
            *[("rate.release", target)] * 2,
            *[("rate.remove", target)] * 2,
        ]
        assert changes[0][2] == {"rate": "10/m", "burst": 3}
        assert changes[2][2] == {"until": told["held_until"], "reason": "they asked"}


async def test_a_queue_is_named_without_a_lane(app: headrace.App) -> None:
    async with client_of(app, await a_key(app)) as client:
        await app.enqueue("add", {"a": 1, "b": 2})
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        await client.put("/queues/default/hold", json={"until": until})
        await client.put("/queues/default/rate", json={"rate": "100/s"})
        await client.put("/queues/default/rate", params={"lane": "x"}, json={"rate": "1/s"})
        [queue, lane] = (await client.get("/rates", params={"queue": "default"})).json()["rates"]
        assert (queue["lane"], queue["waiting"], queue["rate"]["burst"]) == ("", 1, 20)
        assert queue["held_until"] is not None
        assert lane["lane"] == "x"
        assert (await client.get("/rates", params={"lane": ""})).json()["rates"] == [queue]
        assert (await client.get("/rates", params={"limit": 1})).json()["rates"] == [queue]
        await client.delete("/queues/default/hold")
        await client.delete("/queues/default/rate")
        assert [target for _, target, _ in await audited(client)] == [
            "default", "default", "default/x", "default", "default",
        ]  # fmt: skip


async def test_a_job_says_that_it_is_parked(app: headrace.App) -> None:
    await app.set_rate("default", "1/h", lane="user:1")
    ids = [(await app.enqueue("speak", {"user_id": "1"})).id for _ in range(2)]
    await run_jobs(app)
    async with client_of(app) as client, headrace.Client(str(client.base_url)) as remote:
        for fields in ({}, {"fields": "row"}):
            found = (await client.get("/jobs", params=fields)).json()["jobs"]
            shown = {each["job_id"]: (each["status"], each["parked"]) for each in found}
            assert shown == {ids[0]: ("completed", False), ids[1]: ("scheduled", True)}
        parked = await remote.get(ids[1])
        assert (parked.parked, parked.run_at) == (True, (await app.get(ids[1])).run_at)
        assert (await client.get(f"/jobs/{ids[1]}")).json()["parked"] is True


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "told"),
    [
        ("rate", {"rate": "ten"}, 422, "rate", "write"),
        ("rate", {"rate": "0/s"}, 422, "rate", "write"),
        ("rate", {}, 422, "rate", "missing required field"),
        ("rate", {"rate": "1/s", "burst": 0}, 422, "burst", ">= 1"),
        ("rate", {"rate": "1/s", "bust": 1}, 422, None, "unknown field `bust`"),
        ("hold", {}, 422, None, "a hold has an end"),
        ("hold", {"for": 0}, 422, "for", "> 0"),
        ("hold", {"until": "2020-01-01T00:00:00Z"}, 409, "until", "choose a time to come"),
        ("hold", {"until": "2090-01-01T00:00:00Z", "for": 5}, 422, None, "not both"),
        ("hold", {"for": 5, "reason": "a\nb"}, 422, "reason", "matching regex"),
    ],
)
async def test_what_cannot_be_is_refused(
    local_app: headrace.App,
    *,
    path: str,
    body: dict[str, Any],
    status: int,
    field: str | None,
    told: str,
) -> None:
    async with client_of(local_app, await a_key(local_app)) as client:
        refused = problem(await client.put(f"/queues/default/{path}", json=body), status)
        assert told in refused["detail"]
        assert refused.get("field") == field
        assert await local_app.rates() == []
        assert await audited(client) == []


async def test_lanes_that_cannot_be_are_refused(local_app: headrace.App) -> None:
    async with client_of(local_app, await a_key(local_app)) as client:
        for method, path in (("PUT", "rate"), ("DELETE", "rate"), ("DELETE", "hold")):
            for lane in ("", "a\nb", "x" * 513):
                asked = {"rate": "1/s"} if method == "PUT" else None
                answer = await client.request(
                    method, f"/queues/default/{path}", params={"lane": lane}, json=asked
                )
                assert problem(answer, 422)["field"] == "lane", (method, path, lane)
        assert await local_app.rates() == []


async def test_a_key_of_a_queue_sees_and_changes_its_own_queue_only(
    local_app: headrace.App,
) -> None:
    app = local_app
    key = await a_key(app, "admin", queues=["scans"])
    for queue in ("default", "scans", "zoo"):
        for lane in ("", "x"):
            await app.set_rate(queue, "1/s", lane=lane)
    async with client_of(app) as client:
        mine = bearer(key)
        for limit in (1, 2, 100):
            found = await client.get("/rates", params={"limit": limit}, headers=mine)
            assert {each["queue"] for each in found.json()["rates"]} == {"scans"}
        problem(await client.get("/rates", params={"queue": "zoo"}, headers=mine), 403)
        for method, path, body in (
            ("PUT", "rate", {"rate": "5/s"}),
            ("DELETE", "rate", None),
            ("PUT", "hold", {"for": 60}),
            ("DELETE", "hold", None),
        ):
            for asked in ({}, {"lane": "x"}):
                answer = await client.request(
                    method, f"/queues/zoo/{path}", params=asked, json=body, headers=mine
                )
                assert problem(answer, 403, "forbidden")["field"] == "queue"
                done = await client.request(
                    method, f"/queues/scans/{path}", params=asked, json=body, headers=mine
                )
                assert done.status_code == 200, done.text
    for each in await app.rates(queue="zoo"):
        assert (each.rate, each.held_until) == (Rate(1, 1, 1), None)


async def test_those_who_only_read_or_act_for_one_user_change_nothing(
    local_app: headrace.App,
) -> None:
    keys = [
        await a_key(local_app, "read"),
        await a_key(local_app, "write"),
        await a_key(local_app, "admin", user="ada"),
    ]
    async with client_of(local_app) as client:
        for key in keys:
            asked = {"rate": "1/s"}
            answer = await client.put("/queues/default/rate", json=asked, headers=bearer(key))
            problem(answer, 403)
            assert (await client.get("/rates", headers=bearer(key))).status_code == 200
    assert await local_app.rates() == []


async def test_runs_that_a_key_does_not_see_are_not_counted_for_it(
    local_app: headrace.App,
) -> None:
    """A run whose steps are in other queues is a job of its own queue."""
    app = local_app
    mixed = app.workflow("mixed", queue="scans")
    mixed.step("only", "add", {"a": 1, "b": 2})
    await app.workflows.run("mixed")
    await app.enqueue("add", {"a": 1, "b": 2}, queue="scans")
    await app.set_rate("scans", "1/s")
    async with client_of(app) as client:
        for queues, waiting in (([], 2), (["scans"], 1)):
            key = bearer(await a_key(app, "read", queues=queues))
            [found] = (await client.get("/rates", headers=key)).json()["rates"]
            assert found["waiting"] == waiting, queues
