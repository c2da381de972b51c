"""Server-sent events: the bytes, and what happens when the connection is lost."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.client import UnexpectedAnswer
from headrace.client.sse import Event, parse
from headrace.model.ids import new_id
from tests.client.scripted_server import answer, events, hang_up, problem, scripted
from tests.client.test_transport import A_JOB


def told(status: str, number: int) -> bytes:
    data = json.dumps({**A_JOB, "status": status}).encode()
    return b"id: %d\nevent: job\ndata: %s\n\n" % (number, data)


async def parsed(chunks: list[bytes]) -> list[Event]:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [event async for event in parse(stream())]


STREAM = (
    ": a heartbeat\r\n\r\n"
    "id: 1\r\nevent: job\r\ndata: {\u2028\x85}\r\n\r\n"
    "data:two\ndata: lines\n\n"
    "retry: 5\revent: empty\r\r"
    "id\r\ndata\r\n\r\n"
    "data: cut off"
).encode()
EVENTS = [
    Event("job", "{\u2028\x85}".encode(), "1"),
    Event("message", b"two\nlines", "1"),
    Event("message", b"", ""),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
async def test_events_are_read_however_the_bytes_arrive(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in itertools.pairwise(edges)]
    assert await parsed(chunks) == EVENTS


async def test_a_job_is_followed_over_lost_connections_to_its_end() -> None:
    script = (
        events(b": hello\n\n", told("pending", 1), b"id: 2\nevent: jo"),
        hang_up,
        events(told("pending", 1), told("running", 2)),
        answer(503, b"restarting", "text/plain"),
        events(told("completed", 3), told("pending", 4)),
    )
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        seen = [job.status.value async for job in client.events(new_id())]
        assert seen == ["pending", "running", "completed"]
        assert [request.headers.get("last-event-id") for request in server.requests] == [
            None,
            "1",
            "1",
            "2",
            "2",
        ]


async def test_following_is_given_up_when_nothing_comes_any_more() -> None:
    script = (events(told("running", 1)), events(), hang_up)
    async with scripted(*script) as server, headrace.Client(server.url, retries=2) as client:
        changes = client.events()
        assert (await anext(changes)).status.value == "running"
        with pytest.raises(headrace.EngineUnavailable):
            await anext(changes)
        assert len(server.requests) == 3


async def test_all_jobs_are_followed_past_the_end_of_one() -> None:
    stream = events(
        told("completed", 1), b"event: other\ndata: 7\n\n", told("failed", 2), told("running", 3)
    )
    async with scripted(stream) as server, headrace.Client(server.url) as client:
        seen = []
        async with aclosing(client.events(task="add", queue="mail")) as changes:
            async for job in changes:
                seen.append(job.status.value)
                if len(seen) == 3:
                    break
        assert seen == ["completed", "failed", "running"]
        assert server.requests[0].path == "/events?task=add&queue=mail"


async def test_a_gap_is_told() -> None:
    stream = events(b"event: gap\ndata: {}\n\n", told("running", 1))
    gaps = []
    async with scripted(stream) as server, headrace.Client(server.url) as client:
        changes = client.events(on_gap=lambda: gaps.append(1))
        assert (await anext(changes)).status is headrace.Status.RUNNING
        await changes.aclose()
    assert gaps == [1]


async def test_an_id_before_the_first_event_is_where_a_new_connection_goes_on() -> None:
    script = (events(b"id: 7\n\n: following\n\n"), events(told("running", 8)))
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        changes = client.events()
        assert (await anext(changes)).status is headrace.Status.RUNNING
        await changes.aclose()
        asked = [request.headers.get("last-event-id") for request in server.requests]
    assert asked[:2] == [None, "7"]


async def test_a_refusal_is_raised_at_once() -> None:
    gone = problem(404, "job-not-found", "no job has this id")
    async with scripted(gone) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.JobNotFound):
            await anext(client.events(new_id()))
        assert len(server.requests) == 1


async def test_something_else_than_events_is_named() -> None:
    async with scripted(answer(200, {})) as server, headrace.Client(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="application/json"):
            await anext(client.events())


async def test_an_id_leaves_nothing_to_choose() -> None:
    client = headrace.Client("http://127.0.0.1:1")
    with pytest.raises(headrace.InvalidSetting, match="leave them out"):
        await anext(client.events(new_id(), task="add"))
