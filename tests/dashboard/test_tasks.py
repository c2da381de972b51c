"""Tasks: what they do, and the form that runs one."""

from __future__ import annotations

import enum
from datetime import date
from html import unescape
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.status import Status
from headrace.server.dashboard.tasks.form import TaskForm, type_words
from headrace.task.redact import Redactor
from tests.dashboard.conftest import MakeSite, Site, Windows, check_looks, is_live
from tests.dashboard.test_session import client, signed_in, token
from tests.server.conftest import Document, a_key, make_app, run_jobs

HOSTILE = "<script>alert(1)</script>\u202e😀"

ODD = object()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def app(site: Site) -> headrace.App:
    @site.app.task(queue="forms", lane="to-{to}", retries=1)
    async def form(
        *,
        to: str,
        colour: Colour,
        count: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 9,
        ratio: float | None = None,
        urgent: bool = False,
        day: date | None = None,
        language: str = f"en{HOSTILE}",
        mode: Literal["fast", "slow"] = "fast",
        document: Document | None = None,
        password: str = "default-secret",
    ) -> None:
        """Fill in a form."""

    return site.app


async def post(site: Site, path: str, **form: str) -> httpx.Response:
    async with client(site) as browser:
        return await browser.post(f"/ui{path}", data={"token": await token(browser), **form})


async def read(site: Site, path: str, status: int = 200) -> str:
    async with client(site) as browser:
        answer = await browser.get(f"/ui{path}")
    assert answer.status_code == status, answer.text
    return answer.text


async def test_tasks_are_listed_with_their_policy(site: Site, app: headrace.App) -> None:
    text = await read(site, "/tasks")
    assert 'href="/ui/tasks/form"' in text
    assert "1 retry, timeout 10 min, lane to-{to}" in text


class Row(msgspec.Struct):
    sensor: str
    value: float = 0.5


async def test_a_task_with_chunks_shows_them_and_has_the_form_of_one_job(
    site: Site, app: headrace.App
) -> None:
    @app.task("rows.store", chunk=50, chunk_by="sensor")
    async def store(chunk: headrace.Chunk[Row]) -> None: ...

    assert "timeout 10 min, chunks of 50" in await read(site, "/tasks")
    text = await read(site, "/tasks/rows.store")
    assert "up to 50 jobs in one call, of one sensor; waits 200 ms for them" in unescape(text)
    fields = {"arg-sensor": "a", "arg-value": "2.5"}
    answer = await post(site, "/tasks/rows.store/run", **fields)
    job = await app.get(answer.headers["location"].rpartition("/")[2])
    assert job.args == {"sensor": "a", "value": 2.5}


async def test_a_task_shows_its_arguments_and_hides_secret_defaults(
    site: Site, app: headrace.App
) -> None:
    text = await read(site, "/tasks/form")
    assert "default-secret" not in text
    assert "<script>alert" not in text
    shown = unescape(text)
    assert f"en{HOSTILE}" in shown
    for words in (
        "Fill in a form.",
        "whole number from 0 to",
        "one of blue, red",
        "Document or null",
    ):
        assert words in shown
    assert '<option value="&#34;fast&#34;" selected>' in text


async def test_the_form_runs_a_task_once(site: Site, app: headrace.App) -> None:
    fields = {
        "arg-to": HOSTILE,
        "arg-colour": '"blue"',
        "arg-count": str(2**63 - 1),
        "arg-ratio": "",
        "arg-urgent": "true",
        "arg-day": "2026-11-17",
        "arg-language": "",
        "arg-mode": "",
        "arg-document": '{"title": "t", "pages": 2}',
        "arg-password": "typed-secret",
    }
    answer = await post(site, "/tasks/form/run", **fields, delay="60", key="once")
    job = await app.get(answer.headers["location"].rpartition("/")[2])
    assert job.args == {
        "to": HOSTILE,
        "colour": "blue",
        "count": 2**63 - 1,
        "urgent": True,
        "day": "2026-11-17",
        "language": "",
        "document": {"title": "t", "pages": 2},
        "password": "typed-secret",
    }
    assert (job.queue, job.key, job.status) == ("forms", "once", Status.SCHEDULED)
    again = await post(site, "/tasks/form/run", **fields, key="once")
    assert again.headers["location"] == answer.headers["location"]


async def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    site: Site, app: headrace.App
) -> None:
    answer = await post(
        site, "/tasks/form/run",
        **{
            "arg-to": "", "arg-colour": '"green"', "arg-count": "many", "arg-ratio": "[1]",
            "arg-document": '{"title": 5}', "arg-password": "typed-secret", "queue": "other",
        },
    )  # fmt: skip
    assert answer.status_code == 422
    shown = unescape(answer.text)
    for expected in (
        "to: a value is needed",
        "colour: Invalid enum value",
        "count: this is not a number: 'many'",
        "ratio: Expected `float | null`",
        "document: Expected `str`, got `int`",
        'value="many"',
        '{"title": 5}',
        'value="other"',
    ):
        assert expected in shown
    assert "typed-secret" not in shown
    wrong = await post(
        site, "/tasks/form/run", **{"arg-to": "a", "arg-colour": '"red"', "delay": "-1"}
    )
    assert wrong.status_code == 422
    assert "delay" not in str((await app.list()).jobs)
    assert 'value="-1"' in wrong.text


async def test_a_task_that_only_workers_know_shows_what_they_did(
    make_site: MakeSite, tmp_path: Path
) -> None:
    clock = Clock()
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with make_app(url, tmp_path, clock=clock) as worker:
        for number in range(4):
            await worker.enqueue("add", {"a": number, "b": 1})
        await worker.enqueue("broken", {"password": "hidden-secret"})
        await run_jobs(worker)
    clock.advance(120)
    async with headrace.App(url, clock=clock) as app:
        site = await make_site(app)
        text = await read(site, "/tasks")
        assert "not known to this server" in text
        text = await read(site, "/tasks/add")
        assert "completed 4" in text
        assert text.count("<svg") == 4
        assert "cannot run it" in text
        assert "/tasks/add/run" not in text
        text = await read(site, "/tasks/broken")
        assert "100.0 %" in text
        assert "cannot log in with [redacted]" in text
        assert "hidden-secret" not in text
        answer = await post(site, "/tasks/add/run")
        assert answer.status_code == 422
        key = await a_key(app, "read", queues=["scans"])
        async with signed_in(site, key) as browser:
            assert "add" not in (await browser.get("/ui/tasks")).text.partition("<main")[2]
            assert (await browser.get("/ui/tasks/add")).status_code == 404


@pytest.mark.parametrize("name", ["ad", "foo%2Fbar.baz%3Fx%23y", "%3Cscript%3E"])
async def test_a_task_that_nobody_knows(site: Site, name: str) -> None:
    text = await read(site, f"/tasks/{name}", 404)
    assert "is known here" in text
    assert "<script>" not in text


async def test_scopes_and_queues(make_site: MakeSite) -> None:
    site = await make_site()
    app = site.app
    other = NewJob(id=new_id(), task="scan", queue="scans", args=b"{}")
    await app.engine.insert([other])
    read_key = await a_key(app, "read")
    write_key = await a_key(app, "write", queues=["default"])
    async with signed_in(site, read_key) as browser:
        text = (await browser.get("/ui/tasks/add")).text
        assert "<form" not in text.partition("<main")[2]
        form = {"token": await token(browser), "arg-a": "1", "arg-b": "2"}
        assert (await browser.post("/ui/tasks/add/run", data=form)).status_code == 403
    async with signed_in(site, write_key) as browser:
        text = (await browser.get("/ui/tasks")).text.partition("<main")[2]
        assert "scan" not in text
        assert (await browser.get("/ui/tasks/scan")).status_code == 404
        form = {"token": await token(browser), "arg-a": "1", "arg-b": "2", "queue": "scans"}
        refused = await browser.post("/ui/tasks/add/run", data=form)
        assert refused.status_code == 422
        assert "may not use queue" in refused.text
        assert (await browser.post("/ui/tasks/add/run", data=form | {"queue": ""})).is_redirect
    [made] = [job for job in (await app.list()).jobs if job.id != other.id]
    assert made.args == {"a": 1, "b": 2}


def test_schemas_in_words() -> None:
    assert type_words({"type": "array", "items": {"type": "integer"}}) == "list of whole number"
    assert type_words({}) == type_words(True) == "anything"
    assert type_words({"type": "string", "format": "uuid"}) == "uuid"


def test_a_default_that_json_cannot_hold_is_left_to_the_task() -> None:
    app = headrace.App("sqlite:///:memory:")

    @app.task
    async def odd(value: Any = ODD, needed: int | None = 3) -> None: ...

    form = TaskForm(odd, Redactor())
    assert form.read({"arg-value": "", "arg-needed": "4"}) == {"needed": 4}
    assert form.fields[0].default is None


async def test_a_task_is_run_by_keyboard(site: Site, app: headrace.App, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/tasks/form")
    await is_live(page)
    windows.expected = "422"
    await page.locator("#arg-to").fill("ada")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#problem-colour")
    await check_looks(page)
    await page.locator("#arg-colour").select_option("blue")
    await page.locator("#arg-to").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#live-job")
    found = (await app.list()).jobs
    assert len(found) == 1, [
        (j.task, j.args, j.created_at, j.source, j.parent, j.key) for j in found
    ]
    [job] = (await app.list()).jobs
    assert (job.task, job.args["to"], job.args["colour"]) == ("form", "ada", "blue")
