"""The HTTP API, the dashboard and the client: what is sealed is told to be sealed, and opened only
where the settings say so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.model.job import Job
from tests.encryption.conftest import K1, Make, Worker
from tests.server.conftest import a_key, client_of, problem

MARKER = "4111-1111"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


def with_more(app: headrace.App) -> headrace.App:
    """Add a task that leaves something in each place of a view."""

    @app.task("steps", encrypt=True, retries=0)
    async def steps(ctx: headrace.Context, card: str, fails: bool = False) -> dict[str, Any]:
        await ctx.stage("one", str, card)
        event = await ctx.wait("go")
        if fails:
            raise ValueError(f"declined {card}")
        return {"card": card, "event": event}

    return app


async def run_both(app: headrace.App, worker: Worker) -> tuple[Job, Job]:
    """Return a job that completed, and one that failed."""
    jobs = [await app.enqueue("steps", {"card": MARKER, "fails": each}) for each in (False, True)]
    for job in jobs:
        await app.signal(job.id, "go", MARKER)
    await worker(app).run_until_idle()
    return jobs[0], jobs[1]


PAGES = ("/jobs/{}", "/jobs/{}/entries", "/jobs/{}/why", "/jobs?fields=row", "/jobs", "/errors")
UI = ("/ui/jobs/{}", "/ui/jobs", "/ui/jobs/{}/copy", "/ui/errors", "/ui/jobs/{}/args.json")
DOWNLOADS = ("/ui/jobs/{}/entries.json", "/ui/jobs/{}/attempts.json")


async def everything(client: httpx.AsyncClient, *jobs: Job) -> str:
    """Return all pages that show something of these jobs, as one text."""
    found = []
    for job in jobs:
        for page in (*PAGES, *UI, *DOWNLOADS):
            response = await client.get(page.format(job.id))
            assert response.status_code == 200, page
            found.append(response.text)
    return "\n".join(found)


@pytest.mark.parametrize("keys", [None, f"k1:{K1}"], ids=["no-keys", "keys"])
async def test_views_tell_that_it_is_sealed(
    here: str, keys: str | None, make: Make, worker: Worker, stack: AsyncExitStack
) -> None:
    good, bad = await run_both(with_more(make(here)), worker)
    client = await stack.enter_async_context(client_of(make(here, keys)))
    shown = await everything(client, good, bad)
    assert MARKER not in shown
    job = (await client.get(f"/jobs/{good.id}")).json()
    assert job["args"]["$sealed"]["key"] == job["result"]["$sealed"]["key"] == "k1"
    failed = (await client.get(f"/jobs/{bad.id}")).json()
    assert failed["error_type"] == "ValueError"
    assert failed["attempts"][-1]["failure"]["message"] == "sealed with key k1"
    assert "Sealed with key <b>k1</b>" in (await client.get(f"/ui/jobs/{good.id}")).text
    told = problem(await client.get(f"/jobs/{good.id}/result"), 501, "missing-encryption-key")
    assert "HEADRACE_SHOW_SEALED" in told["remedy"]
    # Neither is it found by searching.
    assert (await client.get("/jobs", params={"search": MARKER})).json()["jobs"] == []
    # Jobs that are changed are answered with: also then nothing is opened.
    for verb in ("retry", "cancel"):
        response = await client.post(f"/jobs/{bad.id}/{verb}", json={})
        assert response.status_code == 200
        assert MARKER not in response.text


async def test_views_open_it_where_the_settings_say_so(
    here: str, make: Make, worker: Worker, stack: AsyncExitStack
) -> None:
    good, bad = await run_both(with_more(make(here)), worker)
    client = await stack.enter_async_context(client_of(make(here, show_sealed=True)))
    job = (await client.get(f"/jobs/{good.id}")).json()
    assert job["args"] == {"card": MARKER, "fails": False}
    assert job["result"] == {"card": MARKER, "event": MARKER}
    failed = (await client.get(f"/jobs/{bad.id}")).json()
    assert failed["error_message"] == f"declined {MARKER}"
    assert MARKER in failed["attempts"][-1]["failure"]["traceback"]
    entries = (await client.get(f"/jobs/{good.id}/entries")).json()["entries"]
    values = {each["kind"]: each["body"] for each in entries}
    assert values["stage"]["value"] == values["event"] == MARKER
    for page in ("/ui/jobs/{}", "/ui/jobs/{}/copy"):
        assert MARKER in (await client.get(page.format(bad.id))).text
    assert (await client.get(f"/jobs/{good.id}/result")).json() == {"result": job["result"]}
    found = (await client.get("/jobs", params={"search": MARKER})).json()["jobs"]
    assert {each["job_id"] for each in found} == {good.id, bad.id}


async def test_jobs_are_made_only_by_servers_with_keys(
    url: str, make: Make, worker: Worker, stack: AsyncExitStack
) -> None:
    right, none = make(url), make(url, None)
    with_keys = await stack.enter_async_context(client_of(right))
    without = await stack.enter_async_context(client_of(none))
    wanted = {"task": "pay", "args": {"card": MARKER}}
    told = problem(await without.post("/jobs", json=wanted), 501, "missing-encryption-key")
    assert "HEADRACE_ENCRYPTION_KEYS" in told["remedy"]
    problem(await without.post("/jobs/batch", json={"jobs": [wanted]}), 501)
    assert not (await right.list()).jobs
    response = await with_keys.post("/jobs", json=wanted)
    assert response.status_code == 202
    assert MARKER not in response.text
    job_id = response.json()["job_id"]
    [stored] = await right.engine.get([job_id])
    assert MARKER.encode() not in stored.args_json
    await worker(right).run_until_idle()
    assert (await right.result(job_id))["card"] == MARKER
    # The same for copies, and for events.
    problem(await without.post(f"/jobs/{job_id}/copy", json={}), 501)
    copied = await with_keys.post(f"/jobs/{job_id}/copy", json={"args": {"amount": 7}})
    assert copied.status_code == 202
    assert (await right.get(copied.json()["job_id"])).args == {"card": MARKER, "amount": 7}
    problem(await without.post(f"/jobs/{copied.json()['job_id']}/events/go", json=MARKER), 501)


async def test_sealed_arguments_are_not_taken_from_a_caller(
    here: str, make: Make, stack: AsyncExitStack
) -> None:
    app = make(here)
    job = await app.tasks["pay"].enqueue(card=MARKER)
    client = await stack.enter_async_context(client_of(app))
    moved = {"task": "pay", "args": msgspec.json.decode(job.args_json)}
    problem(await client.post("/jobs", json=moved), 422, "invalid-arguments")


async def test_what_does_not_fit_is_not_quoted(
    here: str, make: Make, stack: AsyncExitStack
) -> None:
    client = await stack.enter_async_context(client_of(make(here)))
    wrong = {"task": "pay", "args": {"card": MARKER, "amount": "many"}}
    told = problem(await client.post("/jobs", json=wrong), 422, "invalid-arguments")
    assert MARKER not in told["detail"]


async def test_a_form_with_files(
    here: str, make: Make, worker: Worker, stack: AsyncExitStack
) -> None:
    app = make(here)

    @app.task("read", encrypt=True)
    async def read(file: str, secret: str) -> str:
        return secret

    client = await stack.enter_async_context(client_of(app))
    form = {"task": "read", "args": f'{{"secret": "{MARKER}"}}'}
    response = await client.post("/jobs", data=form, files={"file": ("a.txt", b"content")})
    assert response.status_code == 202, response.text
    await worker(app).run_until_idle()
    assert await app.result(response.json()["job_id"]) == MARKER


async def test_a_key_of_a_user_changes_own_jobs(
    here: str, make: Make, stack: AsyncExitStack
) -> None:
    """Whose job it is may be in its arguments: the server looks, and shows them to nobody."""
    app = make(here)

    @app.task("own", encrypt=True)
    async def own(user_id: str) -> None: ...

    jobs = [await own.options(delay=60).enqueue(user_id=user) for user in ("ada", "bob")]
    key = await a_key(app, "write", user="ada")
    options = {"user_argument": "user_id"}
    client = await stack.enter_async_context(client_of(app, key, **options))
    assert (await client.post(f"/jobs/{jobs[1].id}/cancel", json={})).status_code == 403
    assert (await client.post(f"/jobs/{jobs[0].id}/cancel", json={})).status_code == 200
    # A server that cannot look takes it for nobody's.
    other = await stack.enter_async_context(client_of(make(here, None), key, **options))
    third = await own.options(delay=60).enqueue(user_id="ada")
    assert (await other.post(f"/jobs/{third.id}/cancel", json={})).status_code == 403


async def test_the_client(here: str, make: Make, worker: Worker, stack: AsyncExitStack) -> None:
    app = make(here)
    server = await stack.enter_async_context(client_of(app))
    client = await stack.enter_async_context(headrace.Client(str(server.base_url)))
    job = await client.enqueue("pay", {"card": MARKER})
    await worker(app).run_until_idle()
    seen = await client.get(job.id)
    assert seen.sealed_with == "k1"
    with pytest.raises(headrace.MissingEncryptionKey, match='"k1"'):
        _ = seen.args
    with pytest.raises(headrace.MissingEncryptionKey, match="HEADRACE_SHOW_SEALED"):
        await client.result(job.id, timeout=5)
    assert (await app.result(job.id))["card"] == MARKER


async def test_runs_of_workflows(
    here: str, make: Make, worker: Worker, stack: AsyncExitStack
) -> None:
    app = make(here)
    orders = app.workflow("orders", params={"card": str})
    orders.step("pay", app.tasks["pay"], {"card": orders.params.card})
    run = await app.workflows.run("orders", {"card": MARKER})
    await worker(app).run_until_idle()
    client = await stack.enter_async_context(client_of(app))
    view = await client.get(f"/workflows/runs/{run.id}")
    assert MARKER not in view.text
    assert view.json()["params"]["$sealed"]["key"] == "k1"
    assert [each["status"] for each in view.json()["steps"]] == ["completed"]
    assert MARKER not in (await client.get(f"/ui/runs/{run.id}")).text
    app.settings = msgspec.structs.replace(app.settings, show_sealed=True)
    shows = await stack.enter_async_context(client_of(app))
    opened = (await shows.get(f"/workflows/runs/{run.id}")).json()
    assert opened["params"] == {"card": MARKER}
    assert opened["steps"][0]["output"]["card"] == MARKER
