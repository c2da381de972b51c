"""Servers that are away, slow, wrong or foreign."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import headrace
from headrace.client import AccessDenied, JobRequest, TooManyRequests, UnexpectedAnswer
from headrace.model.ids import new_id
from headrace.model.insert_policy import OnDuplicate
from tests.client.scripted_server import answer, hang_up, keep_silent, problem, scripted
from tests.support.servers import free_port

A_JOB: dict[str, Any] = {
    "job_id": "01980000-0000-7000-8000-000000000000",
    "task": "add",
    "queue": "default",
    "status": "pending",
    "created_at": "2030-01-31T08:30:00Z",
    "run_at": "2030-01-31T08:30:00+00:00",
}
THERE = answer(200, A_JOB)


async def test_a_read_is_tried_again_until_the_server_is_back() -> None:
    script = (hang_up, answer(503, b"busy", "text/plain"), answer(502, b""), THERE)
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        assert (await client.get(new_id())).task == "add"
        assert len(server.requests) == 4


async def test_a_read_is_given_up_after_the_retries() -> None:
    async with scripted(hang_up) as server, headrace.Client(server.url, retries=2) as client:
        with pytest.raises(headrace.EngineUnavailable, match="headrace server") as caught:
            await client.get(new_id())
        assert caught.value.__cause__ is not None
        assert len(server.requests) == 3


async def test_an_enqueue_without_a_key_is_sent_once() -> None:
    async with scripted(hang_up, THERE) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.EngineUnavailable):
            await client.enqueue("add")
        assert len(server.requests) == 1


async def test_an_enqueue_with_a_key_is_tried_again() -> None:
    async with scripted(hang_up, THERE) as server, headrace.Client(server.url) as client:
        job, created = await client.enqueue_or_find("add", key="once")
        assert (job.task, created) == ("add", False)
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize("policy", ["replace", "debounce"])
async def test_an_enqueue_that_may_replace_others_is_sent_once(policy: OnDuplicate) -> None:
    """The first may have been stored, and have started: a second would run it again."""
    async with scripted(hang_up, THERE) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.EngineUnavailable):
            await client.enqueue("add", key="once", on_duplicate=policy, delay=5)
        assert len(server.requests) == 1


async def test_a_batch_is_tried_again_if_every_job_has_a_key() -> None:
    script = (hang_up, answer(202, {"jobs": [A_JOB, A_JOB], "created": [True, True]}), hang_up)
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        assert len(await client.enqueue_many([client.job("add", key=key) for key in "ab"])) == 2
        assert len(server.requests) == 2
        jobs = [client.job("add", key="a"), client.job("add")]
        with pytest.raises(headrace.EngineUnavailable) as caught:
            await client.enqueue_many(jobs)
        assert caught.value.__notes__ == ["0 jobs of this call were stored before the error"]
        assert len(server.requests) == 3


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_change_is_sent_once(verb: str) -> None:
    async with scripted(hang_up, THERE) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.EngineUnavailable):
            await getattr(client, verb)(new_id())
        assert len(server.requests) == 1


async def test_a_refused_rate_is_waited_for_whatever_was_asked() -> None:
    slow = answer(429, b"{}", Retry_After="0.2")
    async with scripted(slow, slow, THERE) as server, headrace.Client(server.url) as client:
        began = asyncio.get_running_loop().time()
        await client.enqueue("add")
        assert asyncio.get_running_loop().time() - began >= 0.4
        assert len(server.requests) == 3


async def test_a_long_wait_for_the_rate_is_left_to_the_caller() -> None:
    slow = answer(429, b"{}", Retry_After="3600")
    async with scripted(slow) as server, headrace.Client(server.url) as client:
        with pytest.raises(TooManyRequests) as caught:
            await client.queues()
        assert caught.value.retry_after == 3600
        assert len(server.requests) == 1


async def test_a_server_that_does_not_answer_in_time() -> None:
    async with scripted(keep_silent) as server:
        async with headrace.Client(server.url, timeout=0.1, retries=1) as client:
            with pytest.raises(headrace.EngineUnavailable, match="no answer in time"):
                await client.get(new_id())
        assert len(server.requests) == 2


async def test_a_server_that_is_not_there() -> None:
    async with headrace.Client(f"http://127.0.0.1:{free_port()}", retries=0) as client:
        with pytest.raises(headrace.EngineUnavailable, match="API_URL"):
            await client.workers()


@pytest.mark.parametrize(
    ("status", "word", "error"),
    [
        (401, "no-key", AccessDenied),
        (403, "too-weak", AccessDenied),
        (404, "job-not-found", headrace.JobNotFound),
        (404, "not-found", UnexpectedAnswer),
        (409, "job-conflict", headrace.JobConflict),
        (413, "payload-too-large", headrace.PayloadTooLarge),
        (422, "invalid-arguments", headrace.InvalidArguments),
        (422, "unknown-task", headrace.UnknownTask),
        (422, "invalid-name", headrace.InvalidName),
        (400, "malformed-json", headrace.InvalidInput),
        (500, "server-error", UnexpectedAnswer),
        (503, "schema-too-new", headrace.SchemaTooNew),
        (507, "storage-full", headrace.StorageFull),
    ],
)
async def test_a_problem_becomes_the_error_of_an_app(
    status: int, word: str, error: type[headrace.HeadraceError]
) -> None:
    told = problem(status, word, "it is so; do that", remedy="do that", field="args.a")
    async with scripted(told) as server, headrace.Client(server.url) as client:
        with pytest.raises(error, match=r"args\.a: it is so; do that") as caught:
            await client.enqueue("add")
        assert type(caught.value) is error
        assert str(caught.value).count("do that") == 1


async def test_the_result_of_a_failed_job() -> None:
    failed = problem(409, "job-failed", "it ended as failed: no")
    async with scripted(failed) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.JobFailed, match="it ended as failed: no"):
            await client.result(new_id())


@pytest.mark.parametrize(
    "foreign",
    [
        answer(200, b"<html>Welcome</html>", "text/html"),
        answer(200, {"jobs": "many"}),
        answer(404, b"<html>Not here</html>", "text/html"),
        answer(301, b"", Location="http://127.0.0.1:1/elsewhere"),
        answer(500, b"{", "application/problem+json"),
    ],
)
async def test_a_server_of_another_kind_is_named(foreign: Any) -> None:
    async with scripted(foreign) as server, headrace.Client(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="API_URL"):
            await client.list()


async def test_a_server_behind_a_path_is_reached() -> None:
    page = answer(200, {"jobs": [], "cursor": None})
    async with scripted(page) as server, headrace.Client(f"{server.url}/headrace/") as client:
        await client.list(limit=7)
        assert server.requests[0].path == "/headrace/jobs?limit=7"


async def test_a_result_is_asked_for_until_it_is_there() -> None:
    script = (answer(202, A_JOB), answer(202, A_JOB), answer(200, {"result": [7]}))
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        assert await client.result(new_id(), timeout=20) == [7]
        assert len(server.requests) == 3
        assert "timeout=" in server.requests[0].path


async def test_connections_are_kept() -> None:
    async with scripted(THERE) as server, headrace.Client(server.url) as client:
        for _ in range(20):
            await client.get(new_id())
        assert server.connections == 1
        await asyncio.gather(*(client.get(new_id()) for _ in range(50)))
        assert server.connections <= 51
        await client.close()
        await client.get(new_id())


@pytest.mark.parametrize(
    ("login", "header", "value"),
    [("", "authorization", "Bearer k-1"), ("me:pass%20word@", "x-api-key", "k-1")],
)
async def test_the_key_travels_in_a_header(login: str, header: str, value: str) -> None:
    async with scripted(THERE) as server:
        url = server.url.replace("//", f"//{login}")
        async with headrace.Client(url, api_key="k-1") as client:
            await client.get(new_id())
            assert server.requests[0].headers[header] == value
            assert "k-1" not in repr(client) + server.requests[0].path
            assert "pass" not in repr(client)
            assert "pass" not in client.url
        if login:
            assert server.requests[0].headers["authorization"].startswith("Basic ")


async def test_a_loopback_server_is_not_reached_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    async with scripted(THERE) as server, headrace.Client(server.url, retries=0) as client:
        assert (await client.get(new_id())).task == "add"


async def test_closing_tells_those_who_wait_for_an_answer() -> None:
    async with scripted(keep_silent) as server:
        client = headrace.Client(server.url)
        job_id = new_id()
        waiters = [
            asyncio.create_task(client.result(job_id)),
            asyncio.create_task(client.get(job_id)),
            asyncio.ensure_future(anext(client.events(job_id))),
        ]
        async with asyncio.timeout(10):
            await server.asked(3)
            await client.close()
            for waiter in waiters:
                with pytest.raises(headrace.EngineUnavailable, match="the Client was closed"):
                    await waiter
        assert len(server.requests) == 3


async def test_closing_tells_those_who_wait_before_they_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = asyncio.Event()

    def for_ever(tried: int) -> float:
        began.set()
        return 3600.0

    monkeypatch.setattr("headrace.client.transport.pause", for_ever)
    async with scripted(hang_up) as server:
        client = headrace.Client(server.url)
        waiter = asyncio.create_task(client.get(new_id()))
        async with asyncio.timeout(10):
            await began.wait()
            await client.close()
            with pytest.raises(headrace.EngineUnavailable, match="the Client was closed"):
                await waiter


async def test_a_wait_for_a_result_does_not_open_a_closed_client_again() -> None:
    """Closed between two requests of one wait."""
    pending = answer(202, {"job_id": A_JOB["job_id"], "status": "pending"})
    async with scripted(pending) as server:
        client = headrace.Client(server.url)
        waiter = asyncio.create_task(client.result(new_id()))
        async with asyncio.timeout(10):
            await server.asked(1)
            await client.close()
            with pytest.raises(headrace.EngineUnavailable, match="the Client was closed"):
                await waiter
        assert len(server.requests) <= 2
        with pytest.raises(headrace.EngineUnavailable):
            await headrace.Client(f"http://127.0.0.1:{free_port()}", retries=0).get(new_id())


async def test_storing_many_jobs_does_not_open_a_closed_client_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closed between two requests of one call: those before it are stored."""
    monkeypatch.setattr("headrace.client.client.BATCH_JOBS", 1)
    stored = answer(202, {"jobs": [A_JOB], "created": [True]})
    async with scripted(stored) as server:
        client = headrace.Client(server.url)

        async def jobs() -> AsyncIterator[JobRequest]:
            yield client.job("add")
            yield client.job("add")
            await client.close()
            yield client.job("add")

        with pytest.raises(headrace.EngineUnavailable, match="the Client was closed") as caught:
            await client.enqueue_many(jobs())
        assert caught.value.__notes__ == ["1 jobs of this call were stored before the error"]
        assert len(server.requests) == 1
