"""Idempotency keys of bound API keys are their own: on each engine, and across an upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.server.auth.key_space import as_given, in_space
from tests.server.conftest import a_key, bearer, client_of, problem

JOB = {"task": "scan", "args": {"platform": "x", "document": {"title": "t"}}}


@pytest.fixture
async def closed(app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    @app.task("mail.send", queue="mail")
    async def send(text: str = "") -> str:
        return text

    @app.task("any.work", queue="scans")
    async def work(text: str = "") -> str:
        return text

    await a_key(app)
    async with client_of(app) as client:
        yield client


async def post(client: httpx.AsyncClient, key: str, body: Any, path: str = "/jobs") -> Any:
    return await client.post(path, json=body, headers=bearer(key))


async def test_a_key_of_one_tenant_blocks_no_other(
    closed: httpx.AsyncClient, app: headrace.App
) -> None:
    everyone = await a_key(app)
    scans, mail = [await a_key(app, "write", queues=[each]) for each in ("scans", "mail")]
    ada, eve = [await a_key(app, "write", user=each) for each in ("ada", "eve")]
    both = await a_key(app, "write", queues=["scans", "mail"], user="ada")
    body = {"task": "any.work", "key": "k"}
    others = {"task": "mail.send", "key": "k"}
    asked = [
        (scans, body),
        (mail, others),
        (ada, body),
        (eve, body),
        (both, body),
        (both, others),
        (everyone, body),
        (everyone, others),
    ]
    first = [await post(closed, key, each) for key, each in asked]
    assert [answer.status_code for answer in first] == [202] * len(asked)
    made = [answer.json()["job_id"] for answer in first]
    assert len(set(made)) == len(asked)
    again = [await post(closed, key, each) for key, each in asked]
    assert [answer.status_code for answer in again] == [200] * len(asked)
    assert [answer.json()["job_id"] for answer in again] == made
    # Everybody sees the key as it was given.
    assert {answer.json()["key"] for answer in first + again} == {"k"}
    # A rotated key is the same tenant.
    rotated = await a_key(app, "write", queues=["scans", "letters"])
    assert (await post(closed, rotated, body)).json()["job_id"] == made[0]
    found = await closed.get("/jobs", params={"key": "k"}, headers=bearer(scans))
    assert [job["job_id"] for job in found.json()["jobs"]] == [made[0]]
    assert found.json()["jobs"][0]["key"] == "k"
    several = await closed.get("/jobs", params={"key": "k"}, headers=bearer(both))
    assert problem(several, 422)["field"] == "key"
    named = {"key": "k", "queue": "mail"}
    found = await closed.get("/jobs", params=named, headers=bearer(both))
    assert [job["job_id"] for job in found.json()["jobs"]] == [made[5]]
    # What others rely on is as it was: code shares its keys with keys that are not bound.
    assert (await app.enqueue("any.work", {}, key="k")).id == made[6]


async def test_a_batch_is_stored_whole_or_not_at_all(
    closed: httpx.AsyncClient, app: headrace.App
) -> None:
    scans = await a_key(app, "write", queues=["scans"])
    await app.enqueue("any.work", {}, key="taken", queue="mail")
    batch = {"jobs": [{"task": "any.work"}, {"task": "any.work", "key": "taken"}]}
    stored = await post(closed, scans, batch, "/jobs/batch")
    assert stored.status_code == 202
    assert stored.json()["created"] == [True, True]
    assert {job["queue"] for job in stored.json()["jobs"]} == {"scans"}
    before = len((await app.list(limit=100)).jobs)
    wrong = {"jobs": [{"task": "any.work"}, {"task": "any.work", "queue": "mail"}]}
    problem(await post(closed, scans, wrong, "/jobs/batch"), 403)
    assert len((await app.list(limit=100)).jobs) == before


async def test_a_repeated_request_is_found_across_an_upgrade(
    closed: httpx.AsyncClient, app: headrace.App
) -> None:
    """Before there were spaces, a bound key stored its idempotency keys as they were."""
    key, scans = await create_key(app, name="old", scope="write", queues=["scans"])
    ada_key, ada = await create_key(app, name="ada", scope="write", user="ada")
    task = app.find_task("any.work")
    old = await task.options(key="k", source="api", meta={"key_id": key.id}).enqueue()
    hers = await task.options(
        key="hers", source="api", meta={"key_id": ada_key.id, "user": "ada"}
    ).enqueue()
    again = await post(closed, scans, {"task": "any.work", "key": "k"})
    assert (again.status_code, again.json()["job_id"]) == (200, old.id)
    again = await post(closed, ada, {"task": "any.work", "key": "hers"})
    assert (again.status_code, again.json()["job_id"]) == (200, hers.id)
    batch = {"jobs": [{"task": "any.work", "key": "k"}, {"task": "any.work", "key": "new"}]}
    stored = await post(closed, scans, batch, "/jobs/batch")
    assert stored.json()["created"] == [False, True]
    assert stored.json()["jobs"][0]["job_id"] == old.id
    # Of another tenant it is not, nor was it of one who is not bound.
    assert (await post(closed, ada, {"task": "any.work", "key": "k"})).status_code == 202
    await task.options(key="free", source="api", meta={"key_id": "0" * 16}).enqueue()
    assert (await post(closed, scans, {"task": "any.work", "key": "free"})).status_code == 202


async def test_of_two_at_once_one_is_stored(closed: httpx.AsyncClient, app: headrace.App) -> None:
    scans = await a_key(app, "write", queues=["scans"])
    body = {"task": "any.work", "key": "k"}
    answers = await asyncio.gather(*(post(closed, scans, body) for _ in range(8)))
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]


async def test_runs_of_workflows_have_keys_of_their_tenant(
    closed: httpx.AsyncClient, app: headrace.App
) -> None:
    ada, eve = [await a_key(app, "write", user=each) for each in ("ada", "eve")]
    body = {"workflow_id": "sums", "params": {"a": 1}, "key": "k"}
    place = "/api/v2/workflows/execute"
    ids = [
        (await post(closed, key, body, place)).json()["data"]["job_id"] for key in (ada, eve, ada)
    ]
    assert ids[0] == ids[2] != ids[1]


def test_spaces_do_not_meet() -> None:
    given = [
        ("k", None, None),
        ("k", "a", None),
        ("k", None, "a"),
        ("k", "a", "b"),
        (": k", "a", None),
        ("k", "a:", None),
        ("for b: k", "a", None),
        ("k", None, "a: x"),
        ("k", None, "a for b"),
        ("k" * 500, "a", None),
        ("k" * 500, "b", None),
    ]
    stored = [in_space(*each) for each in given]
    assert len(set(stored)) == len(given)
    assert all(len(each.encode()) <= 512 for each in stored)
    for each, (key, queue, user) in zip(stored[:-2], given, strict=False):
        assert as_given(each, queue, user) == key
