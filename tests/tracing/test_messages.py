"""The trace context in headers of messages: out by destinations, in by dispatchers."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.tracing.carrier import checked
from tests.dispatchers.events.conftest import NAMES, Brokers
from tests.dispatchers.events.harness import TOPICS, RedisTopic
from tests.dispatchers.events.scene import Scene, message
from tests.publishing.conftest import PROCESSED, publishing, work
from tests.publishing.test_brokers import KINDS, options_of, received
from tests.support.processes import until
from tests.tracing.conftest import Spans, id_of, parent_of
from tests.tracing.test_spans import ABOVE, SPAN, TRACE


@pytest.mark.parametrize("name", NAMES)
async def test_a_broker_carries_it_out_and_in(
    spans: Spans, tmp_path: Path, brokers: Brokers, name: str
) -> None:
    topic = TOPICS[name](brokers.url(name))
    await topic.open()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(topic.close)
        app = await stack.enter_async_context(publishing(f"sqlite:///{tmp_path}/jobs.db"))
        kind = KINDS.get(name, name)
        await app.put_destination("there", kind, options_of(topic))
        await app.publish(PROCESSED, {"document": "d1"}, "k1")
        await work(app)
        [got] = await received(topic, 1)
        sent = spans.one(f"deliver {kind}")
        assert sent.context is not None
        expected = f"00-{sent.context.trace_id:032x}-{id_of(sent):016x}"
        assert checked(got.headers or {})["traceparent"].startswith(expected)

        # And a job that such a message asks for carries it.
        @app.task
        async def index(document: str) -> None: ...

        asked = msgspec.structs.replace(got, body=message("index", document="d1"))
        meta = msgspec.json.decode(MessageParser(app).job(asked).meta or b"{}")
        assert meta["traceparent"].startswith(expected)
        assert meta.get("sent_at") == (got.sent_at and pytest.approx(got.sent_at, abs=0.01))


async def test_a_dispatcher_goes_on_with_the_trace(
    spans: Spans,
    scene: Scene,
    stream: RedisTopic,
) -> None:
    plain: Any = {"body": message(number=1)}
    with_trace: Any = {"body": message(number=2), "traceparent": ABOVE, "tracestate": "vendor=7"}
    await stream.client.xadd(stream.name, plain)
    await stream.client.xadd(stream.name, with_trace)
    async with scene.dispatcher(stream.adapter()) as dispatcher:
        await until(lambda: dispatcher.counts.stored == 2)
    other, continued = sorted(spans.named("enqueue work"), key=lambda span: bool(span.parent))
    assert other.parent is None
    assert f"{parent_of(continued):016x}" == SPAN
    jobs = (await scene.app.list()).jobs
    [job] = [job for job in jobs if job.args == {"number": 2}]
    assert job.meta["traceparent"] == f"00-{TRACE}-{id_of(continued):016x}-01"
    assert job.meta["tracestate"] == "vendor=7"


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (None, {}),
        ({}, {}),
        ({"traceparent": b"nonsense"}, {}),
        ({"tracestate": "vendor=7"}, {}),
        ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, {}),
        ({"traceparent": ABOVE.encode(), "other": object()}, {"traceparent": ABOVE}),
        ({"traceparent": ABOVE, "tracestate": "x" * 513}, {"traceparent": ABOVE}),
        ({"traceparent": ABOVE, "tracestate": "a=\n"}, {"traceparent": ABOVE}),
    ],
)
async def test_only_what_is_valid_is_taken_also_where_traces_are_off(
    headers: dict[str, Any] | None, kept: dict[str, str]
) -> None:
    app = headrace.App("sqlite://", tracing="off")

    @app.task
    async def index() -> None: ...

    sent = Message(body=message("index"), topic="t", key="k", headers=headers)
    job = MessageParser(app).job(sent)
    assert msgspec.json.decode(job.meta or b"{}") == kept
