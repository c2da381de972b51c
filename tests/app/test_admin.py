"""The verbs of an App around jobs: queues, schedules, workflows, dead letters, files, keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetterNotFound, DeadLetters
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.errors import (
    ArtifactNotFound,
    InvalidName,
    InvalidSetting,
    UnknownSchedule,
    UnknownTask,
    UnknownWorkflow,
)
from headrace.model.job import JobFilter
from headrace.orchestrator import JobOrchestrator


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[headrace.App]:
    made = headrace.App(
        f"sqlite:///{tmp_path}/jobs.db",
        artifacts=str(tmp_path / "artifacts"),
        workflows=str(tmp_path / "workflows"),
    )

    @made.task("greet", queue="mail", lane="to:{name}", retries=0)
    async def greet(ctx: headrace.Context, name: str = "Ada") -> str:
        await ctx.artifacts.put("card.txt", f"Dear {name}".encode(), layer="gold")
        return f"Hello, {name}"

    @made.task("fail", retries=0)
    async def fail() -> None:
        raise RuntimeError("on purpose")

    both = made.workflow("both", params={"name": "Ada"})
    both.step("first", greet, {"name": both.params.name})
    async with made:
        yield made


async def run_all(app: headrace.App) -> None:
    async with JobOrchestrator(app) as orchestrator:
        await orchestrator.run_until_idle()


async def test_a_job_is_made_and_stored_or_found_by_its_key(app: headrace.App) -> None:
    job, created = await app.enqueue_or_find("greet", {"name": "Ada"}, key="a")
    again, twice = await app.enqueue_or_find(app.job("greet", key="a"))
    assert (created, twice) == (True, False)
    assert again.id == job.id
    stored = await app.enqueue_or_find_many([app.job("greet"), app.job("greet", key="a")])
    assert [is_new for _, is_new in stored] == [True, False]
    with pytest.raises(InvalidSetting, match="got also args"):
        await app.enqueue(app.job("greet"), {"name": "Bob"})  # type: ignore[call-overload]
    with pytest.raises(UnknownTask):
        app.job("gret")


async def test_queues_lanes_and_workers_are_seen(app: headrace.App) -> None:
    first = await app.enqueue("greet")
    await app.enqueue("greet")
    await app.pause("mail")
    [queue] = await app.queues()
    assert (queue.name, queue.paused) == ("mail", True)
    await app.resume("mail")
    [lane] = await app.lanes(queue="mail")
    assert (lane.lane, lane.used, lane.waiting, lane.holders) == ("to:Ada", 1, 1, (first.id,))
    assert await app.lanes(queue="other") == []
    with pytest.raises(InvalidName):
        await app.pause("no queue")
    running = await app.running()
    assert (running.summary.running_count, running.queued) == (0, {"mail": 2})
    async with JobOrchestrator(app):
        [worker] = await app.workers()
        assert worker.alive
    assert await app.dispatchers() == []


async def test_a_bulk_change_takes_the_jobs_that_it_makes_sense_for(app: headrace.App) -> None:
    await app.enqueue_many([app.job("fail"), app.job("fail")])
    await run_all(app)
    await app.enqueue("fail")
    every = JobFilter(tasks=("fail",))
    counted = await app.bulk("retry", every, dry_run=True)
    assert (counted.matched, counted.changed) == (2, 0)
    seen: list[int] = []
    done = await app.bulk("cancel", every, reason="not needed", on_progress=seen.append)
    assert (done.matched, done.changed, len(done.ids), seen) == (1, 1, 1, [1])
    assert (await app.get(done.ids[0])).error == "not needed"
    assert (await app.bulk("retry", every)).changed == 2


async def test_files_of_a_job_are_listed_and_downloaded(app: headrace.App, tmp_path: Path) -> None:
    job = await app.enqueue("greet")
    await run_all(app)
    [file] = await app.list_artifacts(job.id)
    assert await app.download(job.id, file.name, layer=file.layer) == b"Dear Ada"
    target = tmp_path / "saved.txt"
    await app.download_to(job.id, file.name, target, layer=file.layer)
    assert target.read_bytes() == b"Dear Ada"
    assert [entry.kind for entry in await app.entries(job.id)] == ["artifact"]
    with pytest.raises(ArtifactNotFound, match="has no file"):
        await app.download(job.id, "other.txt", layer=file.layer)


async def test_a_schedule_is_added_changed_and_triggered(app: headrace.App) -> None:
    added = await app.put_schedule("nightly", "0 3 * * *", "greet", params={"name": "Bob"})
    assert (added.origin, added.enabled, added.tz) == ("app", True, "UTC")
    assert [each.name for each in await app.list_schedules()] == ["nightly"]
    assert (await app.enable_schedule("nightly", False)).enabled is False
    assert len((await app.next_times("nightly", 3)).next) == 3
    job = await app.trigger_schedule("nightly")
    assert job.args == {"name": "Bob"}
    assert [run.job_id for run in (await app.get_schedule("nightly")).last_runs] == [job.id]
    with pytest.raises(InvalidSetting, match="exists already"):
        await app.put_schedule("nightly", "0 4 * * *", "greet", replace=False)
    await app.remove_schedule("nightly")
    with pytest.raises(UnknownSchedule):
        await app.get_schedule("nightly")


async def test_a_workflow_is_run_and_followed(app: headrace.App) -> None:
    assert [each.id for each in await app.list_workflows()] == ["both"]
    assert [step.id for step in (await app.get_workflow("both")).steps] == ["first"]
    begun = await app.run_workflow("both", {"name": "Bob"}, key="once")
    assert (await app.run_workflow("both", key="once")).job_id == begun.job_id
    await run_all(app)
    view = await app.follow_run(begun.job_id)
    assert [step.status for step in view.steps] == ["completed"]
    assert await app.retry_run(begun.job_id, "first") == ["first"]
    with pytest.raises(UnknownWorkflow):
        await app.get_workflow("none")


async def test_a_dead_letter_is_seen_replayed_and_removed(app: headrace.App) -> None:
    bodies = [b'{"handler_name": "later", "params": {}}', b"never"]
    messages = [
        Message(body=body, topic=f"topic-{number}", key=f"k:{number}", partition=0, offset=number)
        for number, body in enumerate(bodies)
    ]
    await DeadLetters(app).keep("kafka", MessageParser(app).parse(messages).refused)
    page = await app.dead_letters(limit=1)
    assert ([each.id for each in page.dead_letters], page.cursor) == (["k:0"], "k:0")
    assert page.dead_letters[0].raw == b""
    rest = await app.dead_letters(cursor=page.cursor, topic="topic-1")
    assert ([each.id for each in rest.dead_letters], rest.cursor) == (["k:1"], None)
    letter = await app.dead_letter("k:1")
    assert (letter.raw, letter.kept_bytes) == (b"never", 5)

    @app.task("later")
    async def later() -> None: ...

    replayed = await app.replay_dead_letter("k:0")
    assert replayed.created
    assert (await app.get(replayed.job_id)).task == "later"
    await app.remove_dead_letter("k:1")
    with pytest.raises(DeadLetterNotFound):
        await app.dead_letter("k:1")


async def test_a_key_is_created_and_revoked(app: headrace.App) -> None:
    key = await app.create_key("ci", "write", queues=["mail"], rate=5.0)
    assert key.secret.startswith(f"hr_{key.id}_")
    [listed] = await app.keys()
    assert (listed.name, listed.scope, listed.revoked_at) == ("ci", "write", None)
    assert not hasattr(listed, "secret")
    assert (await app.revoke_key(key.id)).revoked_at is not None
