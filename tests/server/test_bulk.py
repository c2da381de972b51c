"""Bulk actions: a preview that tells the truth, and actions that a server does by itself."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx
import msgspec

import headrace
from headrace import JobFilter
from headrace.admin import bulk
from headrace.admin.bulk import BulkRecord, Pending
from headrace.admin.bulk_runner import BulkRunner, _Run
from headrace.model.job import Job
from headrace.model.status import Status
from tests.server.conftest import a_key, client_of, problem, run_jobs
from tests.support.processes import until
from tests.support.verbs import a_worker, claim, fail_all, retry

FAILED: dict[str, Any] = {"status": ["failed"]}


async def failures(app: headrace.App, count: int, **options: Any) -> list[Job]:
    """Jobs that have failed."""
    made = await app.enqueue_many([app.job("broken", **options) for _ in range(count)])
    await fail_all(app.engine)
    return made


async def tokens(app: headrace.App, jobs: list[Job]) -> list[int]:
    """How many attempts each job has had in all."""
    return [job.token for job in await app.engine.get([job.id for job in jobs])]


async def start(client: httpx.AsyncClient, action: str = "retry", **fields: Any) -> dict[str, Any]:
    body = {"action": action, "filter": FAILED, "background": True} | fields
    response = await client.post("/jobs/bulk", json=body)
    assert response.status_code == 202, response.text
    made: dict[str, Any] = response.json()
    assert response.headers["location"] == f"/bulk/{made['id']}"
    return made


async def over(client: httpx.AsyncClient, bulk_id: str, state: str = "finished") -> dict[str, Any]:
    """The action, as soon as it is in this state."""

    async def there() -> dict[str, Any] | None:
        found: dict[str, Any] = (await client.get(f"/bulk/{bulk_id}")).json()
        return found if found["state"] == state else None

    found: dict[str, Any] | None = await until(there, f"the state {state}")
    assert found is not None
    return found


async def audit_lines(client: httpx.AsyncClient, bulk_id: str) -> list[dict[str, Any]]:
    entries = (await client.get("/audit?limit=100")).json()["entries"]
    return [entry for entry in entries if entry.get("detail", {}).get("bulk_id") == bulk_id]


# -- the preview -------------------------------------------------------------------------------


async def test_a_preview_tells_what_an_action_will_do(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    await app.enqueue_many([app.job("broken") for _ in range(30)])
    await app.enqueue_many([app.job("broken", queue="slow") for _ in range(3)])
    await app.enqueue("add", {"a": 1, "b": 2})
    await run_jobs(app)
    waiting = await app.enqueue_many([app.job("broken") for _ in range(2)])
    body: dict[str, Any] = {"action": "retry", "filter": FAILED, "dry_run": True}
    counted = (await client.post("/jobs/bulk", json=body)).json()
    assert (counted["matched"], counted["changed"], counted["complete"]) == (33, 0, True)
    assert counted["by_task"] == {"broken": 33}
    assert counted["by_queue"] == {"default": 30, "slow": 3}
    [error] = counted["by_error"]
    assert (error["error_type"], error["count"]) == ("ValueError", 33)
    assert len(counted["samples"]) == 20
    assert counted["samples"][0]["error_message"] == "it broke"
    # What fails after the preview is left alone, also if it was there before.
    late = [*waiting, *await failures(app, 5)]
    body |= {"dry_run": False, "cutoff": counted["cutoff"]}
    body["filter"] = FAILED | {"fingerprint": error["fingerprint"]}
    done = (await client.post("/jobs/bulk", json=body)).json()
    assert (done["matched"], done["changed"]) == (33, 33)
    assert {job.status for job in await app.engine.get([job.id for job in late])} == {Status.FAILED}


async def test_a_preview_says_when_it_has_not_looked_at_all(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    await local_app.enqueue_many(
        [local_app.job("add", {"a": 1, "b": 2}) for _ in range(bulk.PREVIEW_JOBS + 1)]
    )
    body = {"action": "cancel", "filter": {"task": ["add"]}, "dry_run": True}
    counted = (await local.post("/jobs/bulk", json=body)).json()
    assert (counted["matched"], counted["complete"]) == (bulk.PREVIEW_JOBS, False)


async def test_errors_with_different_causes_are_told_apart(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    await failures(app, 3)
    other = await app.enqueue_many([app.job("broken") for _ in range(2)])
    await fail_all(app.engine, "KeyError", "no such user 17")
    body: dict[str, Any] = {"action": "retry", "filter": FAILED, "dry_run": True}
    counted = (await client.post("/jobs/bulk", json=body)).json()
    assert [(each["error_type"], each["count"]) for each in counted["by_error"]] == [
        ("ValueError", 3),
        ("KeyError", 2),
    ]
    mark = counted["by_error"][1]["fingerprint"]
    found = (await client.get("/jobs", params={"fingerprint": mark})).json()
    assert {job["job_id"] for job in found["jobs"]} == {job.id for job in other}
    number = (await client.get("/jobs/count", params={"fingerprint": mark})).json()
    assert number == {"count": 2, "complete": True}
    made = await start(client, filter={"fingerprint": mark})
    done = await over(client, made["id"])
    assert (done["matched"], done["changed"]) == (2, 2)


# -- in the background -------------------------------------------------------------------------


async def test_a_server_does_it_and_one_line_tells_of_it(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    jobs = await failures(app, 1_200)
    made = await start(client)
    assert (made["state"], made["who"], made["filter"]) == ("running", "local", FAILED)
    assert (await client.get(made["jobs"])).status_code == 200
    done = await over(client, made["id"])
    assert (done["matched"], done["changed"], len(done["ids"])) == (1_200, 1_200, 20)
    assert done["finished_at"] is not None
    assert {job.status for job in await app.engine.get([job.id for job in jobs])} == {
        Status.PENDING
    }
    assert [each["id"] for each in (await client.get("/bulk")).json()["bulk"]] == [made["id"]]

    async def told() -> list[dict[str, Any]]:
        lines = await audit_lines(client, made["id"])
        return [line for line in lines if line["detail"]["state"] == "finished"]

    [line] = await until(told)
    assert await audit_lines(client, made["id"]) == [line]
    assert (line["action"], line["who"]) == ("jobs.retry", "local")
    assert line["detail"]["filter"] == FAILED
    assert (line["detail"]["matched"], line["detail"]["changed"]) == (1_200, 1_200)
    problem(await client.delete(f"/bulk/{made['id']}"), 409, "job-conflict")
    problem(await client.post(f"/bulk/{made['id']}/resume"), 409, "job-conflict")


async def test_cancelling_in_the_background(client: httpx.AsyncClient, app: headrace.App) -> None:
    jobs = await app.enqueue_many([app.job("add", {"a": 1, "b": 2}) for _ in range(600)])
    made = await start(client, "cancel", filter={"task": ["add"]}, reason="not needed")
    done = await over(client, made["id"])
    assert (done["matched"], done["changed"], done["reason"]) == (600, 600, "not needed")
    assert {job.error for job in await app.engine.get([job.id for job in jobs])} == {"not needed"}


async def test_jobs_that_fail_again_meanwhile_are_not_retried_twice(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    jobs = await failures(app, 1_500)
    ended = asyncio.Event()

    async def work() -> None:
        while not ended.is_set():
            await fail_all(app.engine)
            await asyncio.sleep(0)

    working = asyncio.create_task(work())
    made = await start(client)
    done = await over(client, made["id"])
    ended.set()
    await working
    await fail_all(app.engine)
    assert (done["matched"], done["changed"]) == (1_500, 1_500)
    assert set(await tokens(app, jobs)) == {2}


async def test_a_stopped_action_goes_on_where_it_was(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    jobs = await failures(app, 400)
    # Not yet by a server, so that the test decides when it goes on.
    made = await app.start_bulk("retry", JobFilter(statuses=(Status.FAILED,)))
    stopped = (await local.delete(f"/bulk/{made.id}")).json()
    assert stopped["state"] == "stopped"
    runner = a_runner(app)
    await runner.tick()
    assert (await app.bulk_action(made.id)).matched == 0
    resumed = (await local.post(f"/bulk/{made.id}/resume")).json()
    assert resumed["state"] == "running"
    assert (await over(local, made.id))["changed"] == 400
    await fail_all(app.engine)
    assert set(await tokens(app, jobs)) == {2}


async def test_a_stop_while_it_runs_keeps_what_was_done(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    jobs = await failures(app, 3_000)
    made = await start(client)

    async def begun() -> bool:
        return bool((await client.get(f"/bulk/{made['id']}")).json()["matched"])

    await until(begun)
    stop = await client.delete(f"/bulk/{made['id']}")
    if stop.status_code == 200:

        async def told() -> list[dict[str, Any]]:
            lines = await audit_lines(client, made["id"])
            return [line for line in lines if line["detail"]["state"] == "stopped"]

        await until(told)
        stopped = (await client.get(f"/bulk/{made['id']}")).json()
        pending = await app.engine.count_jobs(JobFilter(statuses=(Status.PENDING,)))
        assert (stopped["state"], stopped["changed"]) == ("stopped", pending.count)
        await client.post(f"/bulk/{made['id']}/resume")
    done = await over(client, made["id"])
    assert (done["matched"], done["changed"]) == (3_000, 3_000)
    await fail_all(app.engine)
    assert set(await tokens(app, jobs)) == {2}


async def test_a_key_for_some_queues_sees_actions_on_these_only(
    stack: AsyncExitStack, local_app: headrace.App
) -> None:
    app = local_app
    await failures(app, 2)
    own = await failures(app, 2, queue="mail")
    everything = await stack.enter_async_context(client_of(app, await a_key(app)))
    made = await start(everything)
    await over(everything, made["id"])
    await fail_all(app.engine)
    key = await a_key(app, "write", queues=["mail"])
    narrow = await stack.enter_async_context(client_of(app, key))
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/resume")):
        problem(await narrow.request(method, f"/bulk/{made['id']}{path}"), 404, "bulk-not-found")
    assert (await narrow.get("/bulk")).json()["bulk"] == []
    mine = await start(narrow)
    assert mine["filter"]["queue"] == ["mail"]
    assert (await over(narrow, mine["id"]))["changed"] == 2
    assert sorted((await narrow.get(f"/bulk/{mine['id']}")).json()["ids"]) == sorted(
        job.id for job in own
    )
    problem(await narrow.get("/bulk/00000000-0000-7000-8000-000000000000"), 404)


# -- whatever happens to servers ---------------------------------------------------------------


def a_runner(app: headrace.App, *, lease: float = 30.0, batch: int = 50) -> BulkRunner:
    async def tell(bulk_id: str, record: BulkRecord) -> None:
        assert record.state != "running"

    return BulkRunner(app, tell, lease=lease, batch=batch)


async def test_of_several_servers_one_does_it(app: headrace.App) -> None:
    jobs = await failures(app, 500)
    made = await app.start_bulk("retry", JobFilter(statuses=(Status.FAILED,)))
    runners = [a_runner(app) for _ in range(4)]
    ticks = [asyncio.create_task(runner.tick()) for runner in runners]
    while not all(tick.done() for tick in ticks):
        await fail_all(app.engine)
        await asyncio.sleep(0)
    await asyncio.gather(*ticks)
    await fail_all(app.engine)
    done = await app.bulk_action(made.id)
    assert (done.state, done.matched, done.changed) == ("finished", 500, 500)
    assert set(await tokens(app, jobs)) == {2}


async def abandoned(app: headrace.App, jobs: list[Job], **fields: Any) -> str:
    """An action whose server was killed while it changed these jobs."""
    record = BulkRecord(
        action="retry",
        filter=JobFilter(statuses=(Status.FAILED, Status.CANCELLED)),
        cutoff=headrace.model.times.moment_of(await app.engine.now()),
        who="test",
        made_at=app.clock.utcnow(),
        owner="killed",
        pending=[Pending(job.id, 1) for job in jobs],
        walked=True,
    )
    return (await bulk.start(app.engine, msgspec.structs.replace(record, **fields))).id


async def test_who_takes_over_repeats_nothing(app: headrace.App) -> None:
    jobs = await failures(app, 8)
    bulk_id = await abandoned(app, jobs)
    # Before it was killed, the server had retried six. Two of them have failed again, two wait,
    # and two were cancelled before they ran.
    await app.engine.rerun([job.id for job in jobs[:2]])
    await fail_all(app.engine)
    await app.engine.rerun([job.id for job in jobs[2:6]])
    await app.engine.cancel([job.id for job in jobs[4:6]])
    await a_runner(app).tick()
    done = await app.bulk_action(bulk_id)
    assert (done.state, done.matched, done.changed) == ("finished", 8, 8)
    found = await app.engine.get([job.id for job in jobs])
    statuses = {job.id: job.status for job in found}
    assert [statuses[job.id] for job in jobs] == [
        *[Status.FAILED] * 2,
        *[Status.PENDING] * 2,
        *[Status.CANCELLED] * 2,
        *[Status.PENDING] * 2,
    ]


async def test_who_is_alive_is_left_to_it(app: headrace.App) -> None:
    jobs = await failures(app, 2)
    bulk_id = await abandoned(app, jobs, beat=await app.engine.now())
    await a_runner(app).tick()
    assert (await app.bulk_action(bulk_id)).state == "running"
    assert set(await tokens(app, jobs)) == {1}
    assert {job.status for job in await app.engine.get([job.id for job in jobs])} == {Status.FAILED}


async def test_a_server_that_was_frozen_does_no_harm_when_it_goes_on(app: headrace.App) -> None:
    jobs = await failures(app, 3)
    bulk_id = await abandoned(app, jobs)
    record = await app.engine.record_get(bulk.KIND, bulk_id)
    assert record is not None
    frozen = _Run(a_runner(app), app.engine, bulk_id, bulk.decode(record), record.version)
    await a_runner(app).tick()
    await fail_all(app.engine)
    assert (await app.bulk_action(bulk_id)).changed == 3
    # It had looked at the record, and was about to change the jobs.
    frozen.in_doubt = set()
    assert await frozen._change(frozen.bulk.pending) == 0
    await frozen.run()
    assert (await app.bulk_action(bulk_id)).changed == 3
    assert set(await tokens(app, jobs)) == {2}


async def test_runs_of_workflows_and_scheduled_jobs_are_retried_as_one_by_one(
    app: headrace.App,
) -> None:
    later = await app.enqueue("add", {"a": 1, "b": 2}, delay=3_600)
    run = await app.workflows.run("sums", {"a": 1})
    await app.cancel(run.id)
    wanted = JobFilter(statuses=(Status.SCHEDULED, Status.CANCELLED))
    made = await app.start_bulk("retry", wanted)
    await a_runner(app).tick()
    done = await app.bulk_action(made.id)
    assert (done.state, done.changed, done.error) == ("finished", 2, None)
    assert (await app.get(later.id)).status is Status.PENDING
    await run_jobs(app)
    assert (await app.get(run.id)).status is Status.COMPLETED


async def test_runs_of_workflows_are_retried_in_the_foreground_as_well(app: headrace.App) -> None:
    run = await app.workflows.run("sums", {"a": 1})
    await app.cancel(run.id)
    done = await app.bulk("retry", JobFilter(statuses=(Status.CANCELLED,)))
    assert (done.matched, done.changed) == (1, 1)
    await run_jobs(app)
    assert (await app.get(run.id)).status is Status.COMPLETED


async def test_a_scheduled_job_that_has_run_meanwhile_is_left_alone(app: headrace.App) -> None:
    again = await app.enqueue("add", {"a": 1, "b": 2}, delay=60, queue="again")
    later = await app.enqueue("add", {"a": 1, "b": 2}, delay=60)
    made = await app.start_bulk("retry", JobFilter(statuses=(Status.SCHEDULED,)))
    record = await app.engine.record_get(bulk.KIND, made.id)
    assert record is not None
    run = _Run(a_runner(app), app.engine, made.id, bulk.decode(record), record.version)
    await run._save(claiming=True)
    await run._find_more()
    assert [each.id for each in run.bulk.pending] == [later.id, again.id]
    # Before their turn comes, they become due. One waits for another attempt now.
    app.clock.advance(61)
    await app.engine.promote_due(10)
    [claimed] = await claim(app.engine, await a_worker(app.engine), 1, ["again"])
    await retry(app.engine, claimed, delay=600.0)
    await run_jobs(app)
    await run._change_pending()
    job = await app.get(later.id)
    assert (job.status, job.token, run.bulk.changed) == (Status.COMPLETED, 1, 0)
    assert (await app.get(again.id)).status is Status.SCHEDULED


async def test_an_old_action_that_is_resumed_meanwhile_is_not_deleted(
    local_app: headrace.App,
) -> None:
    app = local_app
    made = await app.start_bulk("retry", JobFilter())
    await app.stop_bulk(made.id)
    runner = a_runner(app)
    await runner.tick()
    app.clock.advance(31 * 86_400)
    # The runner has listed them, and is busy with another.
    records = await bulk.all_records(app.engine)
    await app.resume_bulk(made.id)
    await runner._prune(app.engine, records)
    assert (await app.bulk_action(made.id)).state == "running"


async def test_old_actions_are_deleted(local_app: headrace.App) -> None:
    app = local_app
    for _ in range(3):
        made = await app.start_bulk("retry", JobFilter())
    runner = a_runner(app)
    await runner.tick()
    await runner.tick()
    assert len(await app.bulk_actions()) == 3
    app.clock.advance(31 * 86_400)
    await runner.tick()
    assert await app.bulk_actions() == []
    problem_id = made.id
    async with client_of(app) as client:
        problem(await client.get(f"/bulk/{problem_id}"), 404, "bulk-not-found")
