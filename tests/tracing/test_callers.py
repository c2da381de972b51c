"""Callers from outside: the HTTP API, the client, the command line. And the numbers of /metrics."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Receive, Scope, Send

import headrace
from headrace.client import Client
from headrace.errors import InvalidSetting
from headrace.monitor import snapshot
from headrace.server.app import create
from headrace.server.listen import listening
from headrace.server.metrics import read_metrics
from headrace.server.otlp import as_otlp, interval
from headrace.tracing.set_up import exporters
from tests.server.conftest import make_app
from tests.support.processes import Processes
from tests.tracing.collector import a_collector
from tests.tracing.conftest import Spans, about, id_of, parent_of, work
from tests.tracing.test_spans import ABOVE, SPAN, TRACE


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[headrace.App]:
    async with make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as made:
        yield made


async def test_the_client_sends_the_span_it_is_called_in(spans: Spans, shop: headrace.App) -> None:
    async with listening(shop, host="127.0.0.1", port=0) as url, Client(url) as client:
        with trace.get_tracer("own").start_as_current_span("caller"):
            job = await client.enqueue("add", {"a": 1, "b": 2})
        await client.get(job.id)
    request = spans.one("POST /jobs")
    assert parent_of(request) == id_of(spans.one("caller"))
    assert parent_of(spans.one("enqueue add")) == id_of(request)
    # Outside of a span it sends none; a path with an id is told by its route.
    assert spans.one("GET /jobs/{job_id}").parent is None


async def test_requests_are_told_without_path_query_and_probes(
    spans: Spans, shop: headrace.App
) -> None:
    async with (
        listening(shop, host="127.0.0.1", port=0) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        for path in ("/healthz", "/metrics", "/jobs?search=args.b=71717", "/nothing-here-71717"):
            await client.get(path, headers={"traceparent": ABOVE, "tracestate": "vendor=7"})
        refused = await client.post("/jobs", json={"task": "add", "args": {"a": "71717"}})
        assert refused.status_code == 422
    shown = [(span.name, about(span)["http.response.status_code"]) for span in spans.all]
    assert shown == [("GET /jobs", 200), ("GET", 404), ("POST /jobs", 422)]
    assert f"{parent_of(spans.all[0]):016x}" == SPAN
    assert "71717" not in "".join(span.to_json() for span in spans.all)


async def test_an_application_around_it_has_the_span(spans: Spans, shop: headrace.App) -> None:
    inner = create(shop)

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        context = headrace.tracing.find_tracing("on")
        assert context is not None
        above = context.context_of({"traceparent": ABOVE})
        with trace.get_tracer("own").start_as_current_span("outer", above):
            await inner(scope, receive, send)

    transport = httpx.ASGITransport(outer)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        body = {"task": "add", "args": {"a": 1, "b": 2}}
        answer = await client.post("/jobs", json=body, headers={"traceparent": ABOVE})
        assert answer.status_code == 202
    assert [span.name for span in spans.all] == ["outer", "enqueue add"]
    assert parent_of(spans.one("enqueue add")) == id_of(spans.one("outer"))


async def test_the_command_line_goes_on_with_the_trace_of_its_environment(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with a_collector() as collector, Processes(tmp_path) as programs:
        command = programs.headrace(
            *("enqueue", "plain", "secret=abcd", "--app", "tests.tracing.logging_program"),
            *("--url", url),
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v1/traces",
            TRACEPARENT=ABOVE,
        )
        assert await command.ended(90) == 0, command.said
    [top] = collector.children()[SPAN]
    [enqueued] = collector.children()[top.id]
    assert (top.name, enqueued.name) == ("headrace enqueue", "enqueue plain")
    assert (top.trace, top.service) == (TRACE, "headrace-cli")
    async with headrace.App(url) as app:
        job = await app.get(command.said.strip())
        assert job.meta["traceparent"] == f"00-{TRACE}-{enqueued.id}-01"


async def test_otlp_has_the_series_of_metrics(
    shop: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both are made of the same look, however long that takes.
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 60.0)
    for number in range(3):
        await shop.enqueue("add", {"a": number, "b": 1})
    await shop.enqueue("broken")
    await work(shop)
    api = create(shop)
    service = api.state.headrace.get()
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        text = (await client.get("/metrics")).text
    families = {each.name: each for each in text_string_to_metric_families(text)}
    data = as_otlp(await read_metrics(service), Resource({}), time.time_ns())
    [scope] = data.resource_metrics[0].scope_metrics
    told: dict[str, Any] = {metric.name: metric.data for metric in scope.metrics}
    assert set(told) == {name for name, family in families.items() if family.samples}
    for name, family in families.items():
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "le"}
            [point] = [each for each in told[name].data_points if each.attributes == labels]
            if family.type != "histogram":
                assert point.value == sample.value
            elif sample.name.endswith("_count"):
                assert point.count == sample.value == sum(point.bucket_counts)
            elif sample.name.endswith("_sum"):
                assert point.sum == pytest.approx(sample.value)
            else:
                bound = float(sample.labels["le"])
                below = [*point.explicit_bounds, float("inf")].index(bound) + 1
                assert sum(point.bucket_counts[:below]) == sample.value
    assert told["headrace_attempts"].is_monotonic


def test_wrong_variables_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "often")
    with pytest.raises(InvalidSetting, match=r"OTEL_METRIC_EXPORT_INTERVAL is 'often'"):
        interval()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(InvalidSetting, match="use one of http/protobuf, grpc"):
        list(exporters("traces"))
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
    with pytest.raises(InvalidSetting, match="no installed package brings"):
        list(exporters("traces"))
