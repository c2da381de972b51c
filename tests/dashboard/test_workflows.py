"""Workflows and runs: the graph, what ran when, forms, and who sees what."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import headrace
from headrace.server.dashboard.charts.graph import layers
from headrace.server.dashboard.pages.workflows import recent
from headrace.server.dashboard.pages.workflows.pictures import (
    MOST_BOXES,
    GraphStep,
    run_gantt,
    step_graph,
)
from headrace.workflows.steps import StepView
from tests.dashboard.conftest import (
    MakeSite,
    Site,
    Windows,
    is_live,
)
from tests.dashboard.test_session import client, signed_in
from tests.server.conftest import a_key, make_app, run_jobs

HOSTILE = "<script>alert(1)</script>\u202eüñ🦊"


async def run_of(site: Site, workflow: str = "sums", **params: Any) -> str:
    """A run that is over."""
    job = await site.app.workflows.run(workflow, params)
    await run_jobs(site.app)
    return job.id


def with_secrets(app: headrace.App) -> headrace.App:
    """A workflow one of whose steps says what it must not."""

    @app.task(queue="vault", retries=0)
    async def unlock(password: str, note: str = "") -> str:
        raise ValueError(f"cannot unlock with {password} {note}")

    made = app.workflow("vaults", params={"password": str, "note": str})
    made.step("unlock", unlock, {"password": made.params.password, "note": made.params.note})
    return app


def form_token(html: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', html)
    assert found is not None
    return found[1]


async def test_workflows_are_listed_with_their_last_runs(site: Site) -> None:
    async with client(site) as browser:
        before = await browser.get("/ui/workflows")
        assert "none lately" in before.text
        run = await run_of(site, a=1)
        await run_of(site, a=2)
        page = (await browser.get("/ui/workflows")).text
        assert 'aria-label="Last runs of sums, the oldest first: completed, completed"' in page
        shown = (await browser.get("/ui/workflows/sums")).text
        assert f"/ui/runs/{run}" in shown
        assert "headrace workflows run sums a=…" in shown
        assert "One step" in shown
        assert (await browser.get("/ui/workflows/other")).status_code == 404


async def test_runs_are_looked_for_within_a_bound(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = site.app
    other = app.workflow("other")
    other.step("only", "add", {"a": 1, "b": 1})
    first = (await app.workflows.run("other")).id
    for number in range(5):
        await app.workflows.run("sums", {"a": number})
    monkeypatch.setattr(recent, "STEP", 2)
    monkeypatch.setattr(recent, "SECONDS", 0.0)
    async with client(site) as browser:
        page = (await browser.get("/ui/workflows/other")).text
        found = []
        while more := re.search(r'(/ui/workflows/other\?cursor=[0-9a-f-]+)">Look further', page):
            assert first not in page
            found.append(more[1])
            page = (await browser.get(more[1])).text
        assert first in page
        assert len(found) == 2


async def test_a_run_shows_what_each_step_did(site: Site) -> None:
    run = await run_of(site, a=1)
    async with client(site) as browser:
        page = (await browser.get(f"/ui/runs/{run}")).text
        assert "3 completed" in page
        assert page.count('class="box completed"') == 3
        assert page.count('class="bar completed"') == 3
        assert "3 of 3" in page
        assert f"/ui/jobs?parent={run}&amp;group=second" in page
        [step] = [each for each in (await site.app.follow_run(run)).steps if each.id == "first"]
        assert f'<a href="/ui/jobs/{step.job_id}"><g>' in page
        assert 'aria-label="Graph of the steps, scrolls sideways"' in page
        job = await site.app.enqueue("add", {"a": 1, "b": 1})
        assert (await browser.get(f"/ui/runs/{job.id}")).status_code == 404


async def test_what_is_hidden_appears_nowhere(make_site: MakeSite, tmp_path: Any) -> None:
    made = with_secrets(make_app(f"sqlite:///{tmp_path}/other.db", tmp_path))
    async with made as app:
        site = await make_site(app)
        run = await run_of(site, "vaults", password="hunter22", note=HOSTILE)
        async with client(site) as browser:
            page = (await browser.get(f"/ui/runs/{run}")).text
            assert "cannot unlock with [redacted]" in page
            assert "&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            answer = (await browser.get(f"/workflows/runs/{run}")).text
            form = (await browser.get("/ui/workflows/vaults")).text
            assert re.search(r'name="param.password"[^>]*type="password"', form)
        assert "hunter22" not in page + answer + form


async def test_a_key_sees_runs_of_its_own_queues_only(make_site: MakeSite, tmp_path: Any) -> None:
    made = with_secrets(make_app(f"sqlite:///{tmp_path}/other.db", tmp_path))
    async with made as app:
        site = await make_site(app)
        run = await run_of(site, "vaults", password="hunter22", note="")
        own = await run_of(site, a=1)
        key = await a_key(app, "write", queues=["default"])
        async with signed_in(site, key) as browser:
            pages = [await browser.get(f"/ui{path}") for path in ("/workflows", f"/runs/{own}")]
            assert [page.status_code for page in pages] == [200, 200]
            assert "vault" not in "".join(page.text for page in pages)
            # The run itself is in a queue of this key, but a step of it is not.
            assert (await browser.get(f"/ui/runs/{run}")).status_code == 404
            assert (await browser.get("/ui/workflows/vaults")).status_code == 404
            form = {"token": form_token(pages[1].text), "back": "/"}
            for path in (f"/ui/runs/{run}/retry", f"/ui/runs/{run}/cancel"):
                assert (await browser.post(path, data=form)).status_code == 404
            start = form | {"param.password": "x", "param.note": "x"}
            assert (await browser.post("/ui/workflows/vaults/run", data=start)).status_code == 404


async def test_reading_shows_no_form(make_site: MakeSite) -> None:
    site = await make_site()
    run = await run_of(site, a=1)
    async with signed_in(site, await a_key(site.app, "read")) as browser:
        for path in ("/workflows/sums", f"/runs/{run}"):
            page = (await browser.get(f"/ui{path}")).text
            assert "<summary class=" not in page
            assert f'action="/ui{path}' not in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"param.a": "x"}, "a is not JSON"),
        ({}, "needs the parameter &#39;a&#39;"),
        ({"param.a": '"text"'}, "must be of type integer"),
    ],
)
async def test_wrong_parameters_are_explained(site: Site, given: dict[str, str], said: str) -> None:
    async with client(site) as browser:
        token = form_token((await browser.get("/ui/workflows/sums")).text)
        answer = await browser.post("/ui/workflows/sums/run", data={"token": token} | given)
        assert answer.status_code == 422
        assert said in answer.text


async def test_a_run_is_started_retried_and_cancelled(site: Site) -> None:
    async with client(site) as browser:
        token = form_token((await browser.get("/ui/workflows/sums")).text)
        form = {"token": token, "back": "/workflows/sums", "param.a": "4", "param.b": ""}
        begun = await browser.post("/ui/workflows/sums/run", data=form)
        assert begun.status_code == 303
        run = begun.headers["location"].removeprefix("/ui/runs/")
        assert (await site.app.follow_run(run)).params == {"a": 4, "b": 2}
        form = {"token": token, "back": f"/runs/{run}"}
        early = await browser.post(f"/ui/runs/{run}/retry", data=form)
        assert early.status_code == 409
        cancelled = await browser.post(f"/ui/runs/{run}/cancel", data=form)
        assert cancelled.headers["location"] == f"/ui/runs/{run}"
        assert (await site.app.get(run)).status is headrace.Status.CANCELLED
        assert "Retry what did not complete" in (await browser.get(f"/ui/runs/{run}")).text
        await browser.post(f"/ui/runs/{run}/retry", data=form)
        await run_jobs(site.app)
        assert (await site.app.get(run)).status is headrace.Status.COMPLETED
        again = await browser.post(f"/ui/runs/{run}/retry", data=form | {"step": "end"})
        assert again.status_code == 303
        entries = (await browser.get("/audit")).json()["entries"]
        assert [(each["action"], each["target"]) for each in entries] == [
            ("workflow.retry", run),
            ("workflow.retry", run),
            ("job.cancel", run),
            ("workflow.execute", "sums"),
        ]


def _steps(*layers_of: list[tuple[str, str]]) -> list[GraphStep]:
    """Steps by layer, each after one of the layer before."""
    found: list[GraphStep] = []
    before: list[tuple[str, str]] = []
    for layer in layers_of:
        found += [
            GraphStep(id=name, task="add", needs=[each for each, _ in before[:1]], status=status)
            for name, status in layer
        ]
        before = layer
    return found


@pytest.mark.parametrize(
    "steps",
    [
        _steps([(f"a{n}", "completed") for n in range(300)], [("end", "failed")]),
        _steps([(f"a{n}", "pending") for n in range(900)]),
        _steps(*([(f"a{n}", "failed" if n % 2 else "completed")] for n in range(1_000))),
    ],
    ids=["finished", "repeated", "deep"],
)
def test_large_graphs_are_drawn_with_fewer_boxes(steps: list[GraphStep]) -> None:
    found = step_graph("steps", steps)
    boxes = found.picture.count('class="box ')
    assert 0 < boxes <= MOST_BOXES
    assert found.together
    assert sum(map(len, found.layers)) == len(steps)
    # What failed is seen.
    assert ('class="box failed"' in found.picture) == any(s.status == "failed" for s in steps)


def test_small_graphs_have_a_box_for_each_step() -> None:
    found = step_graph("steps", _steps([("a", "completed")], [("b", "failed"), ("c", "pending")]))
    assert (found.together, found.picture.count('class="box ')) == (0, 3)
    assert layers(["a"], []) == [["a"]]


async def test_a_picture_of_what_runs_does_not_change_with_every_look(site: Site) -> None:
    job = await site.app.get((await site.app.workflows.run("sums", {"a": 1})).id)
    start = datetime(2026, 11, 17, 9, tzinfo=UTC)
    job.run_at = start
    view = await site.app.workflows.look(job)
    began = StepView(id="first", task="add", status="running", jobs=1, started_at=start)
    view = msgspec.structs.replace(view, steps=[began, *view.steps[1:]])

    def picture(seconds: int) -> str:
        now = start + timedelta(seconds=seconds)
        return run_gantt(view, job, [], now, lambda _: None)[0]

    assert picture(61) == picture(64) != picture(66)
    assert 'class="bar running"' in picture(61)


async def test_a_workflow_is_run_by_keyboard(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/workflows")
    await is_live(page)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/workflows/sums")
    await is_live(page)
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await page.focus("dialog [name='param.a']")
    await page.keyboard.type("20")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/runs/*")
    await is_live(page)
    await run_jobs(site.app)
    # Live, without a reload.
    await page.wait_for_selector("#live-run .badge[data-status=completed]")
    assert await page.inner_text("#live-run code >> nth=1") == '{"end":25}'
    await page.focus("#live-graph .wide")
    assert await page.evaluate("document.activeElement.tabIndex") == 0
