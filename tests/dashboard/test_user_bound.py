"""The session of a key with a user changes jobs of that user only, as the key itself does."""

from __future__ import annotations

from pathlib import Path

import headrace
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.dashboard.conftest import MakeSite
from tests.dashboard.test_session import signed_in, token
from tests.server.conftest import a_key, run_jobs


async def test_a_session_changes_jobs_of_its_user_only(make_site: MakeSite, tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(lane="user:{user_id}")
    async def speak(user_id: str, text: str = "") -> str:
        return text

    flow = app.workflow("flow")
    flow.step("say", speak, {"user_id": "eve"})
    async with app:
        site = await make_site(app)
        theirs = await app.enqueue("speak", {"user_id": "eve"})
        own = await app.enqueue("speak", {"user_id": "ada"})
        run = await app.workflows.run("flow")
        key = await a_key(app, "admin", user="ada")
        async with signed_in(site, key) as browser:
            form = {"token": await token(browser), "back": "/"}
            refused = [
                f"/jobs/{theirs.id}/cancel",
                f"/jobs/{theirs.id}/retry",
                f"/jobs/{theirs.id}/signal",
                f"/jobs/{theirs.id}/copy",
                f"/runs/{run.id}/cancel",
                "/jobs/bulk",
                "/queues/default/pause",
                "/keys",
            ]
            for path in refused:
                answer = await browser.post(f"/ui{path}", data=form)
                assert answer.status_code == 403, (path, answer.text)
            ticked = form | {"action": "cancel", "id": [own.id, theirs.id]}
            assert (await browser.post("/ui/jobs/selected", data=ticked)).status_code == 403
            assert {job.status for job in (await app.list()).jobs} == {"pending"}
            typed = form | {"arg-user_id": "eve"}
            answer = await browser.post("/ui/tasks/speak/run", data=typed)
            assert answer.status_code == 422
            assert "acts for user" in answer.text
            answer = await browser.post(f"/ui/jobs/{own.id}/cancel", data=form)
            assert answer.status_code == 303
            assert (await browser.get(f"/ui/jobs/{theirs.id}")).status_code == 200
        assert (await app.get(own.id)).status == "cancelled"
        pending = JobFilter(statuses=(Status.PENDING,))
        assert len((await app.engine.list_jobs(pending, limit=10)).jobs) == 2


async def test_a_ticked_step_of_a_run_of_others_is_not_retried(
    make_site: MakeSite, tmp_path: Path
) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(retries=0)
    async def speak(user_id: str) -> None:
        raise ValueError(user_id)

    flow = app.workflow("flow")
    flow.step("mine", speak, {"user_id": "ada"})
    flow.step("theirs", speak, {"user_id": "eve"})
    async with app:
        site = await make_site(app)
        run = await app.workflows.run("flow")
        await run_jobs(app)
        [own] = (await app.list(JobFilter(parent=run.id, group="mine"))).jobs
        key = await a_key(app, "write", user="ada")
        async with signed_in(site, key) as browser:
            form = {"token": await token(browser), "back": "/"}
            ticked = form | {"action": "retry", "id": [own.id]}
            assert (await browser.post("/ui/jobs/selected", data=ticked)).status_code == 403
            answer = await browser.post(f"/ui/jobs/{own.id}/retry", data=form)
            assert answer.status_code == 403
        assert {job.status for job in (await app.list()).jobs} == {"failed"}
