"""Runs that a later program began: this one leaves them alone, and goes on with the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.errors import JobConflict
from headrace.model.ids import new_id
from headrace.model.job import JobFilter, NewJob
from headrace.model.status import Status
from tests.server.conftest import client_of, problem, run_jobs

LATER = (
    b'{"workflow": {"id": "x", "later": true, "steps": [{"id": "a", "task": "t"}]}, "params": {}}'
)


async def test_a_run_that_cannot_be_read_keeps_no_other_from_being_retried(tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(retries=0)
    async def broken() -> None:
        raise ValueError("it broke")

    run = NewJob(id=new_id(), task="headrace.workflow", queue="default", args=LATER)
    step = NewJob(id=new_id(), task="broken", queue="default", args=b"{}", parent=run.id, group="a")
    async with app:
        before = await broken.enqueue()
        await app.engine.insert([run, step])
        await app.cancel(run.id)
        after = await broken.enqueue()
        await run_jobs(app)
        wanted = JobFilter(statuses=(Status.FAILED, Status.CANCELLED))
        done = await app.bulk("retry", wanted)
        assert (done.matched, done.changed) == (4, 2)
        for job in (before, after):
            assert (await app.get(job.id)).status == "pending"
        for job_id in (run.id, step.id):
            with pytest.raises(JobConflict, match="cannot be read by this version"):
                await app.retry(job_id)
        async with client_of(app) as client:
            problem(await client.post(f"/jobs/{run.id}/retry"), 409)
            problem(await client.get(f"/workflows/runs/{run.id}"), 409)
