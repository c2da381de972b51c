"""The client raises what an App raises, for the same mistakes."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

import headrace
from headrace import JobFilter
from headrace.admin.keys import create_key, revoke_key
from headrace.client import AccessDenied, TooManyRequests
from headrace.errors import HeadraceError
from headrace.model.ids import new_id
from tests.client.conftest import Served, eventually

Verb = Callable[[Any], Awaitable[Any]]

MISTAKES: dict[str, Verb] = {
    "an unknown task": lambda api: api.enqueue("ad"),
    "a missing argument": lambda api: api.enqueue("add"),
    "a wrong argument": lambda api: api.enqueue("add", {"a": "x"}),
    "an argument too many": lambda api: api.enqueue("add", {"a": 1, "c": 2}),
    "an argument that is no JSON": lambda api: api.enqueue("add", {"a": object()}),
    "large arguments": lambda api: api.enqueue("broken", {"reason": "x" * 120_000}),
    "a queue that is no name": lambda api: api.enqueue("add", {"a": 1}, queue="no name"),
    "a priority out of range": lambda api: api.enqueue("add", {"a": 1}, priority=5_000),
    "a negative delay": lambda api: api.enqueue("add", {"a": 1}, delay=-1),
    "no number": lambda api: api.enqueue("add", {"a": 1}, delay=float("nan")),
    "a naive time": lambda api: api.enqueue("add", {"a": 1}, run_at=datetime(2030, 1, 1)),
    "a control character": lambda api: api.enqueue("add", {"a": 1}, key="\x00"),
    "a lane without its argument": lambda api: api.enqueue("add", {"a": 1}, lane="of:{x}"),
    "an id that is none": lambda api: api.get("../queues"),
    "an unknown id": lambda api: api.get(new_id()),
    "an unknown job to cancel": lambda api: api.cancel(new_id()),
    "an unknown job to retry": lambda api: api.retry(new_id()),
    "an unknown job to wait for": lambda api: api.result(new_id(), 0.1),
    "an unknown job to ask about": lambda api: api.why(new_id()),
    "a limit out of range": lambda api: api.list(limit=0),
    "a cursor that is none": lambda api: api.list(cursor="x"),
}


async def test_mistakes_are_refused_as_by_an_app(one_server: Served) -> None:
    async with headrace.Client(one_server.url) as client:
        for name, verb in MISTAKES.items():
            with pytest.raises(HeadraceError) as theirs:
                await one_server.acall(_call(verb, one_server.app))
            with pytest.raises(HeadraceError) as ours:
                await verb(client)
            assert (type(ours.value), name) == (type(theirs.value), name)
            assert len(str(ours.value)) > 10
        assert await client.queues() == []


async def _call(verb: Verb, app: headrace.App) -> Any:
    return await verb(app)


async def test_what_is_not_known_over_http_is_refused_here() -> None:
    client = headrace.Client("http://127.0.0.1:1")
    with pytest.raises(headrace.InvalidSetting, match="isolate"):
        await client.enqueue("add", isolate="process")  # type: ignore[call-arg]
    with pytest.raises(headrace.InvalidSetting, match="retries"):
        await client.enqueue("add", retries=-1)
    with pytest.raises(headrace.InvalidSetting, match="timeout"):
        await client.enqueue("add", timeout=0)
    with pytest.raises(headrace.InvalidSetting, match="give no others"):
        await client.enqueue(client.job("add"), {"a": 1})
    with pytest.raises(headrace.InvalidSetting, match="not both"):
        client.job("add", delay=1, run_at=datetime.now().astimezone())
    with pytest.raises(headrace.InvalidSetting, match="time zone"):
        await client.list(JobFilter(created_after=datetime(2030, 1, 1)))


async def test_keys(one_server: Served) -> None:
    app = one_server.app
    reader = await one_server.acall(create_key(app, name="reader", scope="read"))
    writer = await one_server.acall(create_key(app, name="writer", scope="write"))
    slow = await one_server.acall(create_key(app, name="slow", scope="read", rate=0.1))

    async with headrace.Client(one_server.url, api_key=writer[1]) as client:
        job = await client.enqueue("add", {"a": 1}, queue="elsewhere")
        with pytest.raises(AccessDenied, match="admin"):
            await client.pause("default")
    async with headrace.Client(one_server.url, api_key=reader[1]) as client:
        assert (await client.get(job.id)).id == job.id
        assert (await anext(client.events(job.id))).id == job.id
        with pytest.raises(AccessDenied, match="scope write"):
            await client.enqueue("add", {"a": 1})
        await one_server.acall(revoke_key(app, reader[0].id))
    for key in (None, "hr_wrong", reader[1]):
        async with headrace.Client(one_server.url, api_key=key) as client:
            # The server reads its keys once a second.
            denied = await eventually(functools.partial(_denied, client), "the refusal")
            assert "HEADRACE_API_KEY" in denied
            assert str(key) not in denied
    async with headrace.Client(one_server.url, api_key=slow[1]) as client:
        await client.queues()
        with pytest.raises(TooManyRequests) as caught:
            await client.queues()
        assert caught.value.retry_after


async def _denied(client: headrace.Client) -> str:
    try:
        await client.queues()
    except AccessDenied as error:
        return str(error)
    return ""
