"""A server that is killed in the middle of a bulk action: another goes on, and no job comes twice.

While the action runs, a worker fails every job that it retries: one that was retried a second time
would have had three attempts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import JobFilter
from headrace.model.status import Status
from tests.conftest import ENGINES, Servers, store_url
from tests.server.conftest import address_of
from tests.support.processes import Process, Processes, until
from tests.support.verbs import a_job, fail_all

# As many as the dashboard promises: HEADRACE_TEST_BULK_JOBS=50000, which takes some minutes.
JOBS = int(os.environ.get("HEADRACE_TEST_BULK_JOBS", "4000"))
LIMIT = 60.0 + JOBS / 100
LEASE = 2.0


def a_server(processes: Processes, url: str) -> Process:
    return processes.headrace(
        "server",
        *("--app", "tests.crash.program", "--port", "0", "--json"),
        HEADRACE_URL=url,
        HEADRACE_LEASE_SECONDS=str(LEASE),
    )


@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.parametrize("name", ENGINES)
async def test_a_bulk_action_survives_its_server(
    name: str, servers: Servers, tmp_path: Path
) -> None:
    url = store_url(name, servers, tmp_path)
    with Processes(tmp_path) as processes:
        async with headrace.App(url) as app:
            await survive(app, processes, url)


async def survive(app: headrace.App, processes: Processes, url: str) -> None:
    for _ in range(JOBS // 500):
        await app.engine.insert([a_job(task="work") for _ in range(500)])
    assert await fail_all(app.engine) == JOBS
    first, second = a_server(processes, url), a_server(processes, url)
    async with headrace.Client(await address_of(first)) as client:
        await address_of(second)
        made = await client.start_bulk("retry", JobFilter(tasks=("work",)))

        async def begun() -> Any:
            return (await app.bulk_action(made.id)).matched

        await until(begun)
    first.kill()
    left = await app.bulk_action(made.id)
    assert left.state == "running", "it was over before the server was killed: use more jobs"

    async def over() -> bool:
        await fail_all(app.engine)
        return (await app.bulk_action(made.id)).state == "finished"

    await until(over, "the end of the action", limit=LIMIT)
    await fail_all(app.engine)
    done = await app.bulk_action(made.id)
    assert (done.matched, done.changed, done.error) == (JOBS, JOBS, None)
    assert "taken over" in second.said
    attempts: list[int] = []
    cursor: str | None = None
    while True:
        wanted = JobFilter(statuses=(Status.FAILED,))
        page = await app.engine.list_jobs(wanted, cursor=cursor, limit=1_000, brief=True)
        attempts += [job.token for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
    assert attempts == [2] * JOBS
