"""Every verb against the server itself, over each engine."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace
from headrace import JobFilter, Status
from headrace.client import NotFound
from headrace.errors import InvalidInput
from headrace.model.ids import new_id
from tests.client.conftest import Served, eventually

ELSEWHERE = "elsewhere"


async def test_a_job_goes_all_the_way(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("add", {"a": 2, "b": 3}, priority=5, meta={"trace": "x"})
        assert isinstance(job, headrace.Job)
        assert (job.task, job.args, job.priority, job.source) == ("add", {"a": 2, "b": 3}, 5, "api")
        assert job.meta["trace"] == "x"
        assert await client.result(job.id, timeout=20) == 5
        ours, theirs = await client.get(job.id), await served.acall(served.app.get(job.id))
        assert ours.to_dict() == theirs.to_dict()
        assert ours.status is Status.COMPLETED
        assert ours.created_at.tzinfo is not None


async def test_a_failure_is_told_whole(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("broken", {"reason": "no \u2028 ink 한"})
        with pytest.raises(headrace.JobFailed, match="ended as failed: no \u2028 ink 한"):
            await client.result(job.id, timeout=20)
        ours, theirs = await client.get(job.id), await served.acall(served.app.get(job.id))
        assert ours.to_dict() == theirs.to_dict()
        assert ours.attempts[0].failure is not None
        assert "ValueError" in (ours.attempts[0].failure.traceback or "")


async def test_steering(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
        assert any(ELSEWHERE in reason for reason in await client.why(job.id))
        with pytest.raises(headrace.ResultTimeout, match="it goes on"):
            await client.result(job.id, timeout=0.2)
        cancelled = await client.cancel(job.id, "not needed")
        assert (cancelled.status, cancelled.error) == (Status.CANCELLED, "not needed")
        with pytest.raises(headrace.JobConflict, match="cannot be cancelled"):
            await client.cancel(job.id)
        assert (await client.retry(job.id)).status is Status.PENDING
        with pytest.raises(headrace.JobConflict, match="needs no retry"):
            await client.retry(job.id)


async def test_a_running_job_is_seen_and_stopped(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("slow")
        await eventually(lambda: _runs(client, job.id), "the start")
        found = await client.running()
        assert [each.job_id for each in found.running] == [job.id]
        assert found.running[0].platform == "default"
        assert found.summary.running_count == 1
        [worker] = [worker for worker in await client.workers() if worker.alive]
        assert worker.queues == ("default",)
        assert (await client.cancel(job.id)).cancel_requested
        with pytest.raises(headrace.JobFailed, match="cancelled"):
            await client.result(job.id, timeout=20)


async def _runs(client: headrace.Client, job_id: str) -> bool:
    return (await client.get(job_id)).status is Status.RUNNING


async def test_lists_are_filtered_and_paged(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        jobs = await client.enqueue_many(
            client.job("add", {"a": number}, queue=ELSEWHERE, key=f"k{number}")
            for number in range(12)
        )
        await client.enqueue("slow", queue="third", delay=3600)
        wanted = JobFilter(
            statuses=(Status.PENDING, Status.RUNNING),
            queues=(ELSEWHERE, "third"),
            tasks=("add", "slow"),
            source="api",
            created_after=datetime.now(UTC) - timedelta(hours=1),
            created_before=datetime.now(UTC) + timedelta(hours=1),
        )
        seen: list[str] = []
        cursor = None
        while True:
            page = await client.list(wanted, cursor=cursor, limit=5)
            seen += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == [job.id for job in reversed(jobs)]
        [found] = (await client.list(JobFilter(key="k7"))).jobs
        assert found.args == {"a": 7}
        assert (await client.list(JobFilter(statuses=(Status.SCHEDULED,)))).jobs[0].task == "slow"


async def test_queues_lanes_and_tasks(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        await client.pause("default")
        first = await client.enqueue("mine", {"user": 7})
        for _ in range(2):
            await client.enqueue("mine", {"user": 7})
        [queue] = [queue for queue in await client.queues() if queue.name == "default"]
        assert (queue.paused, queue.ready, queue.waiting) == (True, 2, 1)
        [lane] = await client.lanes(queue="default", lane="user:7", limit=5)
        assert (lane.lane, lane.width, lane.used, lane.waiting) == ("user:7", 2, 2, 1)
        assert any("paused" in reason for reason in await client.why(first.id))
        await client.resume("default")
        assert not [queue for queue in await client.queues() if queue.paused]
        tasks = {task.name: task for task in await client.tasks()}
        assert tasks["add"].arguments["required"] == ["a"]
        assert tasks["broken"].policy["retries"] == 0


async def test_a_key_makes_one_job(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        first, created = await client.enqueue_or_find("add", {"a": 1}, key="a key: 한 / ?")
        again, created_again = await client.enqueue_or_find("add", {"a": 2}, key="a key: 한 / ?")
        assert (created, created_again) == (True, False)
        assert first.id == again.id
        jobs = [client.job("add", {"a": 1}, key=key, retries=1, timeout=None) for key in "aba"]
        answers = await client.enqueue_or_find_many(jobs)
        assert [created for _, created in answers] == [True, True, False]
        kept = await client.get(answers[0][0].id)
        assert (kept.max_attempts, kept.timeout) == (2, None)


async def test_many_jobs_are_stored_in_order(served: Served) -> None:
    told: list[int] = []
    async with headrace.Client(served.url) as client:
        jobs = await client.enqueue_many(
            (client.job("add", {"a": number}, queue=ELSEWHERE) for number in range(2_500)),
            on_progress=told.append,
        )
        assert [job.args["a"] for job in jobs] == list(range(2_500))
        assert told == [1_000, 2_000, 2_500]
        assert sorted(job.id for job in jobs) == [job.id for job in jobs]
        [queue] = [queue for queue in await client.queues() if queue.name == ELSEWHERE]
        assert queue.ready == 2_500


async def test_a_bad_job_in_a_batch_stores_none_of_it(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        jobs = [client.job("add", {"a": number}, queue=ELSEWHERE) for number in range(1_500)]
        jobs[1_200] = client.job("add", {"a": "x"})
        with pytest.raises(headrace.InvalidArguments, match=r"jobs\[200\]") as caught:
            await client.enqueue_many(jobs)
        assert caught.value.__notes__ == ["1000 jobs of this call were stored before the error"]
        [queue] = await client.queues()
        assert queue.ready == 1_000


async def test_large_jobs_travel_in_several_requests(one_server: Served) -> None:
    async with headrace.Client(one_server.url) as client:
        jobs = [client.job("broken", {"reason": "x" * 90_000}, queue=ELSEWHERE) for _ in range(100)]
        assert len(await client.enqueue_many(jobs)) == 100


async def test_bulk_changes(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        await client.enqueue_many(client.job("add", {"a": 1}, queue=ELSEWHERE) for _ in range(7))
        wanted = JobFilter(queues=(ELSEWHERE,), statuses=(Status.PENDING,))
        counted = await client.bulk("cancel", wanted, dry_run=True)
        assert (counted.matched, counted.changed, len(counted.ids)) == (7, 0, 7)
        done = await client.bulk("cancel", wanted, reason="all of them")
        assert (done.matched, done.changed) == (7, 7)
        assert (await client.get(done.ids[0])).error == "all of them"
        with pytest.raises(InvalidInput, match="filter"):
            await client.bulk("retry", JobFilter())


async def test_stages_and_files(served: Served, tmp_path: Path) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("staged")
        assert await client.result(job.id, timeout=20) == 7
        entries = await client.entries(job.id)
        assert ("stage", "counting") in [(entry.kind, entry.name) for entry in entries]
        assert entries == await served.acall(served.app.engine.entries(job.id))
        [file] = await client.artifacts(job.id)
        assert (file.layer, file.name, file.size) == ("artifacts", "numbers 한.txt", 5)
        assert await client.download(job.id, "numbers 한.txt") == b"1 2 3"
        with pytest.raises(NotFound, match="has no file"):
            await client.download(job.id, "other.txt", layer="gold")

        (tmp_path / "report.txt").write_text("a report")
        files = {"file": tmp_path / "report.txt"}
        job = await client.enqueue("ingest", {"language": "ko"}, files=files, priority=3, key="f")
        assert job.priority == 3
        assert await client.result(job.id, timeout=20) == "ko: a report"
        again = await client.enqueue("ingest", files={"file": ("memory.txt", b"kept")}, key="f")
        assert again.id == job.id
        with pytest.raises(InvalidInput, match=r"cannot read .*none\.txt"):
            await client.enqueue("ingest", files={"file": tmp_path / "none.txt"})


async def test_one_job_is_followed_to_its_end(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        job = await client.enqueue("add", {"a": 1}, delay=0.3)
        seen = [each async for each in client.events(job.id)]
        statuses = list(dict.fromkeys(each.status.value for each in seen))
        assert statuses[0] == "scheduled"
        assert statuses[-1] == "completed"
        assert seen[-1].result == 2
        with pytest.raises(headrace.JobNotFound):
            await anext(client.events(new_id()))


async def test_all_jobs_are_followed(served: Served) -> None:
    async with headrace.Client(served.url) as client:
        ended: set[str] = set()
        following = asyncio.Event()

        async def follow(wanted: int) -> None:
            async with aclosing(client.events(task="add")) as changes:
                async for job in changes:
                    following.set()
                    assert job.task == "add"
                    if job.status.final:
                        ended.add(job.id)
                    if len(ended) >= wanted:
                        return

        task = asyncio.create_task(follow(6))

        async def knock() -> bool:
            await client.enqueue("add", {"a": 0})
            return following.is_set()

        await eventually(knock, "the first event")
        for _ in range(5):
            await client.enqueue("add", {"a": 1})
        await client.enqueue("broken")
        await asyncio.wait_for(task, 20)


async def test_a_restarted_server_is_waited_for(one_server: Served) -> None:
    async with headrace.Client(one_server.url, retries=8) as client:
        job = await client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
        changes = client.events(job.id)
        assert (await anext(changes)).status is Status.PENDING
        await asyncio.to_thread(one_server.stop)
        reading = asyncio.create_task(client.get(job.id))
        keyed = asyncio.create_task(client.enqueue("add", {"a": 2}, key="once"))
        await asyncio.to_thread(one_server.start)
        assert (await reading).id == job.id
        assert (await keyed).key == "once"
        await client.cancel(job.id)
        assert (await anext(changes)).status is Status.CANCELLED
        assert await anext(changes, None) is None
