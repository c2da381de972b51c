"""An event stream whose caller has gone writes nothing more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headrace.model.job import Job
from headrace.monitor.changes.subscribers import Change, Subscriber
from headrace.server.http import sse
from headrace.server.http.sse import EventStream
from tests.server.test_change_reconstruction import PENDING


async def test_a_stream_notices_between_two_events_that_its_caller_has_gone() -> None:
    """A transport tells of its end in the next turn of the loop, however much there is to send."""
    subscriber = Subscriber()
    gone = asyncio.Event()
    sent = 0

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal sent
        sent += 1
        if sent == 5:
            asyncio.get_running_loop().call_soon(gone.set)

    async def welcome() -> bool:
        return True

    def large(_: Job) -> bytes:
        return bytes(sse.SENT_BYTES)

    for number in range(200):
        subscriber.offer(Change(number, PENDING, large))
    service: Any = SimpleNamespace(subscribers=set())
    stream = EventStream(
        service,
        subscriber,
        leave=lambda: None,
        identify=lambda change: "1",
        still_welcome=welcome,
        data=lambda change: change.data,
    )
    async with asyncio.timeout(60):
        await stream({"type": "http"}, receive, send)
    # The transport is told in one turn, whoever waits for it in the next two.
    assert sent <= 5 + 3
