"""Circuit breakers over HTTP: listed, opened and closed by those who may, and audited."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

import headrace
from tests.server.conftest import a_key, bearer, client_of, problem

LANE = "task:call"
PLACE = {"queue": "default", "lane": LANE}


@pytest.fixture
async def app(local_app: headrace.App) -> headrace.App:
    @local_app.task(breaker=headrace.Breaker(failures=3, within=60, pause=30))
    async def call() -> None: ...

    return local_app


@pytest.fixture
async def client(app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def test_one_is_opened_listed_and_closed(
    app: headrace.App, client: httpx.AsyncClient
) -> None:
    assert (await client.get("/breakers")).json()["breakers"] == []
    opened = await client.post("/breakers/open", json={**PLACE, "pause": 600, "reason": "deploy"})
    assert opened.status_code == 200, opened.text
    [shown] = (await client.get("/breakers", params={"queue": "default"})).json()["breakers"]
    assert shown == opened.json()
    assert (shown["lane"], shown["pause"], shown["reason"]) == (LANE, 600, "deploy")
    assert (await client.get("/breakers", params={"lane": "other"})).json()["breakers"] == []
    found = (await client.get("/summary")).json()["findings"]
    [finding] = [each for each in found if each["kind"] == "breaker.open"]
    assert finding["name"] == f"default/{LANE}"
    assert "is open: opened by hand by" in finding["detail"]
    closed = await client.post("/breakers/close", json=PLACE)
    assert closed.json() == {**PLACE, "was_open": True}
    assert (await client.post("/breakers/close", json=PLACE)).json()["was_open"] is False
    # Without a pause it is that of its task.
    assert (await client.post("/breakers/open", json=PLACE)).json()["pause"] == 30
    entries = (await client.get("/audit", params={"action": "breaker"})).json()["entries"]
    actions = [(each["action"], each["target"]) for each in entries]
    assert actions == [
        ("breaker.open", f"default/{LANE}"),
        ("breaker.close", f"default/{LANE}"),
        ("breaker.open", f"default/{LANE}"),
    ]


async def test_what_cannot_be_opened_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/breakers/open", json={"queue": "default", "lane": "other"})
    assert "no task that is known here" in problem(answer, 409)["detail"]
    for wrong in ({**PLACE, "pause": 0.1}, {**PLACE, "pose": 3}, {"queue": "default"}):
        problem(await client.post("/breakers/open", json=wrong), 422)


async def test_keys_for_some_queues_see_and_change_only_those(app: headrace.App) -> None:
    await app.open_breaker("default", LANE)
    scans = await a_key(app, queues=["scans"])
    reader = await a_key(app, "read")
    async with client_of(app, scans) as client:
        assert (await client.get("/breakers")).json()["breakers"] == []
        problem(await client.get("/breakers", params={"queue": "default"}), 403)
        for verb in ("open", "close"):
            problem(await client.post(f"/breakers/{verb}", json=PLACE), 403)
            answer = await client.post(f"/breakers/{verb}", json=PLACE, headers=bearer(reader))
            problem(answer, 403)
    assert await app.breakers()


async def test_a_client_has_the_same_verbs(app: headrace.App) -> None:
    async with client_of(app) as server, headrace.Client(str(server.base_url)) as client:
        opened = await client.open_breaker("default", LANE, pause=60, reason="deploy")
        assert await client.breakers(queue="default", lane=LANE) == [opened]
        assert await client.close_breaker("default", LANE)
        assert not await client.close_breaker("default", LANE)
        assert await client.breakers() == []
        with pytest.raises(headrace.InvalidInput, match="no task that is known here"):
            await client.open_breaker("default", "other")
