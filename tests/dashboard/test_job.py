"""The page of one job: what it says, what it hides, and what can be done there."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

import headrace
from headrace.model.ids import new_id
from headrace.model.job import Job, NewJob
from headrace.model.outcome import AttemptEntry, Failure
from headrace.model.status import Status
from headrace.server.dashboard.jobs import details as job_details
from headrace.task.redact import Redactor
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.test_session import client, signed_in, token
from tests.server.conftest import a_key, run_jobs
from tests.support.verbs import a_worker, claim

HOSTILE = "<script>alert(1)</script>\u202e😀/bar.baz?x#y"
SECRET = "hunter2-of-ada"


@pytest.fixture
def app(site: Site) -> headrace.App:
    app = site.app

    @app.task(retries=0)
    async def login(ctx: headrace.Context, user: str, password: str, config: Any = None) -> Any:
        await ctx.stage("look up", str, f"{user} found")
        ctx.progress(50, f"with {password}")
        await ctx.artifacts.put(HOSTILE, b"<p>hello", layer="bronze", media_type="text/html")
        if user == "bad":
            raise ConnectionError(f"refused {password} of {HOSTILE}")
        return {"user": user, "password": password, "n": 2**63 - 1, "sum": 0.1 + 0.2}

    @app.task
    async def approve(ctx: headrace.Context) -> Any:
        return await ctx.wait('the boss\'s "yes"', timeout=600)

    return app


async def read(site: Site, path: str, status: int = 200) -> str:
    async with client(site) as browser:
        answer = await browser.get(f"/ui{path}")
    assert answer.status_code == status, answer.text
    assert len(answer.content) < 300_000
    return answer.text


async def post(site: Site, path: str, **form: str) -> httpx.Response:
    async with client(site) as browser:
        return await browser.post(f"/ui{path}", data={"token": await token(browser), **form})


async def failed(app: headrace.App) -> Job:
    args = {"user": "bad", "password": SECRET, "config": {"api_key": f"{SECRET}-2", "host": "h"}}
    job = await app.enqueue("login", args)
    await run_jobs(app)
    return await app.get(job.id)


async def test_a_failed_job_is_told_without_its_secrets(site: Site, app: headrace.App) -> None:
    job = await failed(app)
    text = await read(site, f"/jobs/{job.id}")
    assert SECRET not in text
    assert "<script>alert" not in text
    shown = unescape(text)
    ended = f"{job.completed_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"It is finished: failed at {ended}" in re.sub("</?time[^>]*>", "", shown)
    assert f"refused [redacted] of {HOSTILE}" in shown
    assert '"password": "[redacted]"' in re.sub("<.*?>", "", shown)
    for expected in ("Traceback", "look up", '"bad found"', "stage 'look up'", "attempt 1 failed"):
        assert expected in shown
    assert quote(HOSTILE, safe="") in text
    for verb in ("show", "why", "retry", "cancel"):
        assert f"headrace jobs {verb} {job.id}" in text
    for path in (f"/jobs/{job.id}/{name}.json" for name in ("args", "attempts", "entries")):
        assert SECRET not in await read(site, path)
    # Nor in what the stream sends.
    async with client(site) as browser:
        part = await browser.get(f"/ui/jobs/{job.id}", headers={"Headrace-Part": "live-job"})
        assert "[redacted]" in part.text
        assert SECRET not in part.text


async def test_numbers_are_exact(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("login", {"user": "ada", "password": SECRET})
    await run_jobs(app)
    text = await read(site, f"/jobs/{job.id}")
    assert str(2**63 - 1) in text
    assert "0.30000000000000004" in text
    written = b'{"n": 1e400, "m": 12345678901234567890123, "password": "hunter2-x"}'
    new = NewJob(id=new_id(), task="login", args=written)
    await app.engine.insert([new])
    text = await read(site, f"/jobs/{new.id}")
    assert "1e400" in text
    assert "12345678901234567890123" in text
    assert "hunter2" not in text
    assert "1e400" in await read(site, f"/jobs/{new.id}/args.json")


async def test_files_are_attachments(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("login", {"user": "ada", "password": SECRET})
    await run_jobs(app)
    async with client(site) as browser:
        answer = await browser.get(f"/ui/jobs/{job.id}/files/bronze/{quote(HOSTILE, safe='')}")
        assert answer.content == b"<p>hello"
        for each in (answer, await browser.get(f"/ui/jobs/{job.id}/result.json")):
            assert each.headers["content-disposition"].startswith("attachment;")
            assert each.headers["x-content-type-options"] == "nosniff"
            assert each.headers["content-security-policy"].startswith("sandbox")
        assert answer.headers["content-type"] == "application/octet-stream"
        for path in ("files/bronze/none", "files/lead/x", "meta.json", "log.json"):
            assert (await browser.get(f"/ui/jobs/{job.id}/{path}")).status_code == 404


async def test_a_waiting_job_names_who_holds_its_lane(site: Site, app: headrace.App) -> None:
    document = {"title": "a"}
    first = await app.enqueue("scan", {"platform": HOSTILE, "document": document})
    second = await app.enqueue("scan", {"platform": HOSTILE, "document": document})
    text = await read(site, f"/jobs/{second.id}")
    assert f"is held by {first.id}" in text
    holders = text[text.index('id="holders"') :].partition("</p>")[0]
    assert f'href="/ui/jobs/{first.id}"' in holders
    assert "waits for its place in lane" in text


async def test_every_unfinished_job_says_why_it_is_where_it_is(
    site: Site, app: headrace.App
) -> None:
    waits = await app.enqueue("approve")
    await run_jobs(app)
    late = await app.enqueue("add", {"a": 1, "b": 2}, delay=600.0)
    pending = await app.enqueue("add", {"a": 1, "b": 2})
    paused = await app.enqueue("add", {"a": 1, "b": 2}, queue="mail")
    await app.pause("mail", reason="provider is down", by="ada")
    held = await app.enqueue("slow", queue="held")
    await claim(app.engine, await a_worker(app.engine, "busy"), 1, ["held"])
    expected = {
        late.id: "It is due at", pending.id: "It may run now", paused.id: "is paused",
        held.id: "busy", waits.id: "waits for",
    }  # fmt: skip
    for job_id, words in expected.items():
        text = await read(site, f"/jobs/{job_id}")
        why = text[text.index('id="why"') :].partition("</div>")[0]
        assert words in unescape(why), (job_id, why)


@pytest.mark.parametrize("job_id", ["01990000-0000-7000-8000-000000000000", "nope", "foo%2Fbar"])
async def test_a_job_that_is_not_there_is_told_kindly(site: Site, job_id: str) -> None:
    text = await read(site, f"/jobs/{job_id}", 404)
    if "%" not in job_id:
        assert "pruned" in text
        assert "headrace jobs list" in text


async def test_large_jobs_are_read_whole_only_when_they_change(
    make_site: MakeSite, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with headrace.App(f"sqlite:///{tmp_path}/large.db", payload_limit=20_000_000) as app:

        @app.task
        async def store(rows: list[str], password: str) -> None: ...

        site = await make_site(app)
        args = {"password": SECRET, "rows": ["x" * 100] * 100_000}
        job = await app.enqueue("store", args)
        lines = [
            AttemptEntry(n, n, "retry", "w", job.created_at, job.created_at, Failure("E", SECRET))
            for n in range(1, 20_001)
        ]
        log = b"".join(msgspec.json.encode(each) + b"\n" for each in lines)
        get, reads = app.engine.get, []

        async def counted(ids: Any) -> Any:
            reads.append(ids)
            return [msgspec.structs.replace(each, log=log) for each in await get(ids)]

        monkeypatch.setattr(app.engine, "get", counted)
        taken_apart: list[bool] = []
        may_hide = Redactor.may_hide

        def looked(self: Redactor, encoded: bytes) -> bool:
            # Ten megabytes are looked through twice: as a whole, and as the value of `rows`.
            taken_apart.append(len(encoded) > 1_000_000)
            return may_hide(self, encoded)

        monkeypatch.setattr(Redactor, "may_hide", looked)
        text = await read(site, f"/jobs/{job.id}")
        assert sum(taken_apart) == 2
        assert len(text.encode()) < 300_000
        assert "9.8 MiB" in text
        assert SECRET not in text
        assert "19,990 more" in text
        assert await read(site, f"/jobs/{job.id}") is not None
        assert len(reads) == 1
        await app.cancel(job.id)
        reads.clear()
        assert "cancelled" in await read(site, f"/jobs/{job.id}")
        assert len(reads) == 1
        async with client(site) as browser:
            whole = await browser.get(f"/ui/jobs/{job.id}/args.json")
            assert whole.json() == args | {"password": "[redacted]"}
            log_read = await browser.get(f"/ui/jobs/{job.id}/attempts.json")
            assert len(log_read.json()) == 20_000
            form = await browser.get(f"/ui/jobs/{job.id}/copy")
            assert "too large to be edited here" in form.text


async def test_many_stages_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_details, "ENTRIES_SECONDS", 0.0)
    app = site.app

    @app.task
    async def stages(ctx: headrace.Context) -> None:
        for number in range(300):
            await ctx.stage("page", str, "y" * 3_000 if number == 299 else "short", key=number)

    job = await app.enqueue("stages")
    await run_jobs(app)
    text = await read(site, f"/jobs/{job.id}")
    assert "260 between them are not shown" in text
    assert "y" * 3_000 not in text
    async with client(site) as browser:
        assert len((await browser.get(f"/ui/jobs/{job.id}/entries.json")).json()) == 300


async def test_a_job_is_retried_also_from_a_stage(site: Site, app: headrace.App) -> None:
    job = await failed(app)
    assert "<option>look up</option>" in await read(site, f"/jobs/{job.id}")
    answer = await post(site, f"/jobs/{job.id}/retry", from_stage="look up", back=f"/jobs/{job.id}")
    assert answer.headers["location"] == f"/ui/jobs/{job.id}"
    assert (await app.get(job.id)).status is Status.PENDING
    assert not await app.engine.entries(job.id, "stage")
    text = await read(site, f"/jobs/{job.id}")
    assert "job.retry" in text
    answer = await post(site, f"/jobs/{job.id}/retry")
    assert answer.status_code == 409


async def test_a_job_is_cancelled_with_a_reason(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("add", {"a": 1, "b": 2})
    await post(site, f"/jobs/{job.id}/cancel", reason=f"no longer {HOSTILE}")
    now = await app.get(job.id)
    assert (now.status, now.error) == (Status.CANCELLED, f"no longer {HOSTILE}")
    text = await read(site, f"/jobs/{job.id}")
    assert f"job.cancel: no longer {HOSTILE}" in unescape(text)
    assert "<script>alert" not in text


async def test_an_event_is_delivered(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("approve")
    await run_jobs(app)
    event = 'the boss\'s "yes"'
    text = unescape(await read(site, f"/jobs/{job.id}"))
    assert f"Deliver event {event}?" in text
    assert f"headrace jobs signal {job.id} 'the boss'\"'\"'s \"yes\"'" in text
    wrong = await post(site, f"/jobs/{job.id}/signal", event=event, value="{")
    assert wrong.status_code == 422
    assert "value is not JSON" in wrong.text
    await post(site, f"/jobs/{job.id}/signal", event=event, value='{"by": "ada"}')
    await run_jobs(app)
    assert await app.result(job.id, 5) == {"by": "ada"}


async def test_children_parents_and_copies_are_linked(site: Site, app: headrace.App) -> None:
    parent = await app.enqueue("add", {"a": 1, "b": 2})
    children = [
        NewJob(id=new_id(), task="add", args=b'{"a":1,"b":2}', parent=parent.id) for _ in range(25)
    ]
    await app.engine.insert(children)
    text = await read(site, f"/jobs/{parent.id}")
    assert text.count('id="child-') == 20
    assert "All 25" in text
    assert f'href="/ui/jobs/{parent.id}"' in await read(site, f"/jobs/{children[0].id}")


# -- a new job with these arguments ----------------------------------------------------------------


async def test_a_copy_takes_other_arguments_and_its_secrets_again(
    site: Site, app: headrace.App
) -> None:
    job = await failed(app)
    text = unescape(await read(site, f"/jobs/{job.id}/copy"))
    assert SECRET not in text
    assert '{"user": "bad"}' in text
    assert '"api_key": "[redacted]"' in text
    path = f"/jobs/{job.id}/copy"
    fields = {"args": '{"user": "ada"}', "hidden-password": "new-secret"}
    config = {"hidden-config": '{"api_key": "newer-secret", "host": "h"}'}
    for wrong, named in (
        ({"args": '{"user": "ada"}'}, "password has a hidden value"),
        (fields | {"hidden-config": '{"api_key": "[redacted]"}'}, "config still has [redacted]"),
        (fields | config | {"args": '{"user": '}, "args is not JSON"),
        (fields | config | {"args": "[]"}, "args must be a JSON object"),
        (fields | config | {"args": '{"user": 5}'}, "Expected `str`, got `int`"),
        (fields | config | {"delay": "soon"}, "delay must be a number"),
        (fields | config | {"queue": "<b>"}, "queue"),
    ):
        answer = await post(site, path, **wrong)
        assert answer.status_code in (409, 422)
        shown = unescape(answer.text)
        assert named in shown
        assert wrong["args"] in shown
        assert "new-secret" not in shown
        assert "newer-secret" not in shown
    answer = await post(site, path, **fields, **config, queue="other", delay="60", key="k1")
    made = await app.get(answer.headers["location"].rpartition("/")[2])
    assert made.args == {
        "user": "ada",
        "password": "new-secret",
        "config": {"api_key": "newer-secret", "host": "h"},
    }
    assert (made.queue, made.key, made.status) == ("other", "k1", Status.SCHEDULED)
    assert made.meta["copy_of"] == job.id
    assert f'href="/ui/jobs/{job.id}"' in await read(site, f"/jobs/{made.id}")
    again = await post(site, path, **fields, **config, key="k1")
    assert again.headers["location"] == f"/ui/jobs/{made.id}"


async def test_an_argument_that_is_taken_out_is_not_copied(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("speak", {"user_id": "a", "text": "long"})
    answer = await post(site, f"/jobs/{job.id}/copy", args='{"user_id": "a"}')
    made = await app.get(answer.headers["location"].rpartition("/")[2])
    assert made.args == {"user_id": "a"}


# -- who may see and do what -----------------------------------------------------------------------


async def test_read_sees_no_form_and_may_do_nothing(make_site: MakeSite) -> None:
    site = await make_site()
    job = await site.app.enqueue("add", {"a": 1, "b": 2})
    read_key, write_key = await a_key(site.app, "read"), await a_key(site.app, "write")
    async with signed_in(site, read_key) as browser:
        text = (await browser.get(f"/ui/jobs/{job.id}")).text
        assert "<form" not in text.partition("<main")[2]
        assert "New job with" not in text
        assert (await browser.get(f"/ui/jobs/{job.id}/copy")).status_code == 403
        form = {"token": await token(browser), "args": "{}", "event": "x"}
        for verb in ("retry", "cancel", "signal", "copy"):
            answer = await browser.post(f"/ui/jobs/{job.id}/{verb}", data=form)
            assert answer.status_code == 403
    async with signed_in(site, write_key) as browser:
        form = {"token": await token(browser)}
        await browser.post(f"/ui/jobs/{job.id}/cancel", data=form)
        text = (await browser.get(f"/ui/jobs/{job.id}")).text
        # Who changed what is for administrators.
        assert "job.cancel" not in text
    assert (await site.app.get(job.id)).status is Status.CANCELLED


async def test_a_key_for_one_queue_sees_no_trace_of_others(make_site: MakeSite) -> None:
    site = await make_site()
    app = site.app
    other = await app.enqueue("scan", {"platform": "p", "document": {"title": "t"}})
    own = NewJob(id=new_id(), task="add", args=b'{"a":1,"b":2}', parent=other.id)
    child = NewJob(id=new_id(), task="add", queue="scans", parent=own.id)
    await app.engine.insert([own, child])
    key = await a_key(app, "write", queues=["default"])
    async with signed_in(site, key) as browser:
        text = (await browser.get(f"/ui/jobs/{own.id}")).text
        assert other.id not in text
        assert child.id not in text
        form = {"token": await token(browser)}
        for path in (
            "",
            "/copy",
            "/args.json",
            "/attempts.json",
            "/entries.json",
            "/files/bronze/x",
        ):
            assert (await browser.get(f"/ui/jobs/{other.id}{path}")).status_code == 404
        for verb in ("retry", "cancel", "signal", "copy"):
            answer = await browser.post(f"/ui/jobs/{other.id}/{verb}", data=form)
            assert answer.status_code == 404
    assert (await app.get(other.id)).status is Status.PENDING


# -- in a browser ----------------------------------------------------------------------------------


async def test_the_page_is_live(site: Site, app: headrace.App, windows: Windows) -> None:
    job = await failed(app)
    page = await windows.open(f"{site.base}/jobs/{job.id}")
    await is_live(page)
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await page.keyboard.press("Escape")
    await page.evaluate("document.querySelector('.tree')?.closest('section').scrollIntoView()")
    await app.retry(job.id)
    await page.wait_for_selector("#live-job [data-status=pending]")
    await page.keyboard.press("c")
    await page.locator("dialog [name=reason]").fill("not needed")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#live-job [data-status=cancelled]")
    assert (await app.get(job.id)).error == "not needed"


async def test_a_key_of_json_is_not_lost(site: Site, app: headrace.App) -> None:
    job = await app.enqueue("login", {"user": HOSTILE, "password": SECRET, "config": {HOSTILE: []}})
    text = await read(site, f"/jobs/{job.id}")
    assert "<script>alert" not in text
    shown = re.sub(r"<[^>]*>", "", text)
    assert json.dumps(HOSTILE, ensure_ascii=False) in unescape(shown)
