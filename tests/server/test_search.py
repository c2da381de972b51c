"""Filters, searches and rows: what callers find, and what they must not find."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

import headrace
from headrace.model.fingerprint import fingerprint
from headrace.model.job import JobFilter
from headrace.monitor import search
from tests.server.conftest import a_key, client_of, problem, run_jobs
from tests.support.verbs import fail_all

SECRET = "hunter2-swordfish"


async def ids(client: httpx.AsyncClient, **params: Any) -> list[str]:
    """The jobs that are found, over all pages."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        response = await client.get("/jobs", params=params | more)
        assert response.status_code == 200, response.text
        page = response.json()
        found += [job["job_id"] for job in page["jobs"]]
        assert (page["searched_to"] is None) or page["cursor"] is not None
        cursor = page["cursor"]
        if cursor is None:
            return found


async def test_jobs_are_found_by_error_worker_and_end(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    await app.enqueue("add", {"a": 1, "b": 2})
    await run_jobs(app)
    middle = app.clock.utcnow().isoformat()
    broken = await app.enqueue("broken")
    await fail_all(app.engine)
    shown = (await client.get(f"/jobs/{broken.id}")).json()
    assert "admitted_at" in shown
    for params in (
        {"error_type": "ValueError"},
        {"error_type": ["KeyError", "ValueError"]},
        {"worker": shown["worker"]},
        {"finished_since": middle},
        {"fingerprint": fingerprint("ValueError", "it broke")},
        {"search": "IT BROKE"},
    ):
        assert await ids(client, **params) == [broken.id], params
        if "search" not in params:
            count = (await client.get("/jobs/count", params=params)).json()
            assert count == {"count": 1, "complete": True}
    assert broken.id not in await ids(client, finished_until=middle)
    assert await ids(client, error_type="KeyError") == []
    body = {"action": "retry", "filter": {"error_type": ["ValueError"], "worker": shown["worker"]}}
    assert (await client.post("/jobs/bulk", json=body)).json()["ids"] == [broken.id]
    problem(await client.get("/jobs", params={"finished_since": "yesterday"}), 422)
    problem(await client.get("/jobs", params={"fingerprint": "xyz"}), 422)


async def test_jobs_are_found_by_arguments_and_words(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    ann = await app.enqueue("speak", {"user_id": "7", "text": 'say "Grüße"'}, key="letter-1")
    bob = await app.enqueue("speak", {"user_id": "70", "text": "hello"}, meta={"tags": ["x", 5]})
    document = {"title": "Report", "pages": 3}
    scan = await app.enqueue("scan", {"platform": "web", "document": document})
    for words, expected in (
        ("args.user_id=7", [ann]),
        ("args.document.pages=3", [scan]),
        ("args.document.pages=30", []),
        ("args.document=3", []),
        ("meta.tags.1=5", [bob]),
        ("meta.tags.2=5", []),
        ('say "grüSSE"', [ann]),
        ("LETTER-1", [ann]),
        (scan.id[9:], [scan]),
        ("nothing of this", []),
    ):
        assert await ids(client, search=words) == [job.id for job in expected], words
    assert await ids(client, search=["args.user_id=70", "hello"]) == [bob.id]
    assert await ids(client, search=["args.user_id=7", "hello"]) == []
    assert await ids(client, search="hello", queue="scans") == []
    problem(await client.get("/jobs", params={"search": "  "}), 422)


async def test_hidden_values_cannot_be_guessed(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    job = await local_app.enqueue("broken", {"password": SECRET}, meta={"api_key": SECRET})
    await run_jobs(local_app)
    assert SECRET in ((await local_app.get(job.id)).error or "")
    told = f"cannot log in with {SECRET}"
    for params in (
        {"search": SECRET},
        {"search": SECRET[:4]},
        {"search": f"args.password={SECRET}"},
        {"search": f"meta.api_key={SECRET}"},
        {"fingerprint": fingerprint("ValueError", told)},
    ):
        assert await ids(local, **params) == [], params
        if "fingerprint" in params:
            assert (await local.get("/jobs/count", params=params)).json()["count"] == 0
            for flag in ("dry_run", "background"):
                body = {"action": "retry", "filter": params, flag: True}
                response = await local.post("/jobs/bulk", json=body)
                assert response.json()["matched"] == 0
    assert await ids(local, search="cannot log in") == [job.id]
    body = {"action": "retry", "filter": {"status": ["failed"]}, "dry_run": True}
    for response in (
        await local.get("/jobs?fields=row"),
        await local.get("/jobs?search=cannot"),
        await local.post("/jobs/bulk", json=body),
    ):
        assert job.id in response.text
        assert "cannot log in" in response.text
        assert SECRET not in response.text
        assert fingerprint("ValueError", told) not in response.text


async def test_rows_are_jobs_without_what_may_be_large(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    await app.enqueue("speak", {"user_id": "7"}, meta={"a": 1})
    await app.enqueue("broken")
    await run_jobs(app)
    whole = (await client.get("/jobs")).json()["jobs"]
    rows = (await client.get("/jobs?fields=row")).json()["jobs"]
    large = {"args", "result", "attempts", "meta"}
    assert rows == [{k: v for k, v in job.items() if k not in large} for job in whole]
    problem(await client.get("/jobs?fields=everything"), 422)


async def test_a_key_for_some_queues_finds_only_its_own(
    stack: AsyncExitStack, local_app: headrace.App
) -> None:
    own = await local_app.enqueue("speak", {"user_id": "7"}, queue="mail")
    await local_app.enqueue("speak", {"user_id": "7"})
    key = await a_key(local_app, "read", queues=["mail"])
    client = await stack.enter_async_context(client_of(local_app, key))
    assert await ids(client, search="args.user_id=7") == [own.id]
    assert await ids(client, fields="row") == [own.id]
    assert (await client.get("/jobs/count")).json()["count"] == 1
    problem(await client.get("/jobs?search=x&queue=default"), 403)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
async def test_a_search_ends_in_time_and_can_go_on(app: headrace.App, seconds: float) -> None:
    made = await app.enqueue_many(
        [app.job("speak", {"user_id": str(number)}) for number in range(300)]
    )
    matches = search.all_of(["args.user_id=3"])
    found: list[str] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        page = await search.search(app.engine, JobFilter(), matches, cursor=cursor, seconds=seconds)
        found += [job.id for job in page.jobs]
        cursor, pages = page.cursor, pages + 1
    assert found == [made[3].id]
    assert (pages > 5) == (seconds == 0.0)
    first = await search.find(app.engine, JobFilter(), ["nobody"], seconds=0.0)
    assert first.cursor is not None
    assert first.searched_to is not None
    assert search.time_of(made[0].id) <= first.searched_to <= app.clock.utcnow()


async def test_a_search_returns_no_more_than_asked_for(app: headrace.App) -> None:
    made = await app.enqueue_many([app.job("broken") for _ in range(30)])
    await fail_all(app.engine)
    expected = [job.id for job in reversed(made)]
    mark = fingerprint("ValueError", "it broke")
    for options in ({"search": ["broke"]}, {"fingerprint": mark}):
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await app.list(limit=7, cursor=cursor, **options)
            assert len(page.jobs) <= 7
            found += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == expected


# -- copies ------------------------------------------------------------------------------------


async def test_a_copy_has_other_arguments(client: httpx.AsyncClient, app: headrace.App) -> None:
    job = await app.enqueue("speak", {"user_id": "7", "text": "a"}, queue="mail", priority=5)
    response = await client.post(f"/jobs/{job.id}/copy", json={"args": {"text": "b"}})
    assert response.status_code == 202
    made = response.json()
    assert made["job_id"] != job.id
    assert response.headers["location"] == f"/jobs/{made['job_id']}"
    assert made["args"] == {"user_id": "7", "text": "b"}
    assert (made["queue"], made["priority"], made["lane"]) == ("mail", 5, "user:7")
    assert made["meta"]["copy_of"] == job.id
    other = await app.copy(job.id, {"user_id": "8"}, queue="slow")
    assert (other.queue, other.lane, other.args) == (
        "slow",
        "user:8",
        {"user_id": "8", "text": "a"},
    )
    wrong = problem(await client.post(f"/jobs/{job.id}/copy", json={"args": {"x": 1}}), 409)
    assert wrong["field"] == "args"


async def test_hidden_arguments_are_not_copied(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    job = await local_app.enqueue("broken", {"password": SECRET})
    refused = problem(await local.post(f"/jobs/{job.id}/copy"), 409, "invalid-arguments")
    assert (refused["field"], SECRET in str(refused)) == ("args.password", False)
    made = await local.post(f"/jobs/{job.id}/copy", json={"args": {"password": "another"}})
    assert made.status_code == 202
    assert (await local_app.get(made.json()["job_id"])).args == {"password": "another"}


async def test_a_copy_is_for_callers_who_may_have_both(
    stack: AsyncExitStack, local_app: headrace.App
) -> None:
    foreign = await local_app.enqueue("speak", {"user_id": "8"}, queue="mail")
    hidden = await local_app.enqueue("speak", {"user_id": "7"})
    key = await a_key(local_app, "write", queues=["mail"], user="7")
    client = await stack.enter_async_context(client_of(local_app, key))
    problem(await client.post(f"/jobs/{hidden.id}/copy"), 404)
    problem(await client.post(f"/jobs/{foreign.id}/copy"), 403)
    own = {"args": {"user_id": "7"}}
    problem(await client.post(f"/jobs/{foreign.id}/copy", json=own), 403)
    mine = await local_app.enqueue("speak", {"user_id": "7"}, queue="mail", meta={"user": "7"})
    # A key for queues makes jobs of their tasks only; this task is of another queue.
    problem(await client.post(f"/jobs/{mine.id}/copy", json=own), 409, "unknown-task")
    of_user = await a_key(local_app, "write", user="7")
    client = await stack.enter_async_context(client_of(local_app, of_user))
    problem(await client.post(f"/jobs/{foreign.id}/copy", json=own), 403)
    assert (await client.post(f"/jobs/{mine.id}/copy", json=own)).status_code == 202
