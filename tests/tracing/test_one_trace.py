"""One HTTP request, a job with stages and children, an event out: one trace over processes."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.model.status import Status
from tests.conftest import Servers, store_url
from tests.publishing.receiver import Received, a_receiver
from tests.server.conftest import START_LIMIT, address_of
from tests.support.processes import Processes, until
from tests.tracing.collector import Collector, Got, a_collector

SERVER, PRODUCER, CONSUMER, CLIENT = 2, 4, 5, 3


class Scene(msgspec.Struct):
    """What was seen of one request from outside."""

    trace: str
    caller: str
    job_id: str
    collector: Collector
    webhook: Received
    worker_log: str
    exposition: str

    def one(self, parent: Got | str, name: str) -> Got:
        found = self.all(parent, name)
        assert len(found) == 1, (name, self.collector.tree(self.caller))
        return found[0]

    def all(self, parent: Got | str, name: str) -> list[Got]:
        top = parent if isinstance(parent, str) else parent.id
        return [span for span in self.collector.children()[top] if span.name == name]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("programs")) as started:
        yield started


async def play(url: str, programs: Processes, collector: Collector) -> Scene:
    """Send the request to a server program, and let a worker program do what it asks for."""
    environment = {
        "HEADRACE_URL": url,
        "HEADRACE_APP": "tests.tracing.program",
        "HEADRACE_ALLOW_PRIVATE_WEBHOOKS": "true",
        "HEADRACE_LOG_FORMAT": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "300000",
    }
    trace, caller = secrets.token_hex(16), secrets.token_hex(8)
    async with (
        a_receiver() as receiver,
        headrace.App(url) as app,
        httpx.AsyncClient(timeout=30) as client,
    ):
        await app.put_destination("crm", "webhook", {"url": receiver.url})
        worker = programs.headrace("worker", "--max-workers", "2", **environment)
        server = programs.headrace("server", "--port", "0", "--json", **environment)
        address = await address_of(server)
        asked = await client.post(
            f"{address}/jobs",
            json={"task": "order", "args": {"order": "o-17", "password": "hunter2-hunter2"}},
            headers={"traceparent": f"00-{trace}-{caller}-01"},
        )
        assert asked.status_code == 202, asked.text
        job_id = asked.json()["job_id"]

        async def over() -> bool:
            assert worker.code is None, worker.said
            return (await app.get(job_id)).status.final and bool(receiver.requests)

        await until(over, "the event", START_LIMIT)
        job = await app.get(job_id)
        assert job.status is Status.COMPLETED, job.error
        assert job.result == 12
        counted = 'headrace_attempts_total{outcome="completed",queue="default",task="part"} 2.0'

        async def told() -> str:
            """Workers report what they have counted every two seconds."""
            text = (await client.get(f"{address}/metrics")).text
            return text if counted in text else ""

        exposition = await until(told, "the attempts in /metrics", START_LIMIT)
        for program in (worker, server):
            program.terminate()
        for program in (worker, server):
            assert await program.ended() == 0, program.said
        [webhook] = receiver.requests
    return Scene(trace, caller, job_id, collector, webhook, worker.said, exposition)


@pytest.fixture(scope="module", params=["sqlite", "postgres", "redis"])
def scene(
    request: pytest.FixtureRequest,
    servers: Servers,
    programs: Processes,
    tmp_path_factory: pytest.TempPathFactory,
) -> Scene:
    folder: Path = tmp_path_factory.mktemp("store")
    with a_collector() as collector:
        return asyncio.run(play(store_url(request.param, servers, folder), programs, collector))


def test_it_is_one_tree_with_right_parents(scene: Scene) -> None:
    mine = [span for span in scene.collector.spans if span.trace == scene.trace]
    request = scene.one(scene.caller, "POST /jobs")
    enqueued = scene.one(request, "enqueue order")
    # It is left for its children, and comes back.
    first, second = scene.all(enqueued, "run order")
    assert first.attributes["headrace.outcome"] == "snoozed"
    assert second.attributes["headrace.outcome"] == "completed"
    assert len(scene.all(enqueued, "wait order")) == 2
    scene.one(first, "stage fetch")
    scene.one(first, "stage parse")
    scene.one(second, "stage add up")
    spawned = scene.one(first, "enqueue part")
    assert spawned.attributes["messaging.batch.message_count"] == 2
    parts = scene.all(spawned, "run part")
    assert len(parts) == 2
    for part in parts:
        # In another process, whose own spans are there, too.
        scene.one(scene.one(part, "own work"), "stage measure")
    published = scene.one(second, "publish order.done.v1")
    shared = scene.one(published, "run headrace.publish")
    delivery = scene.one(scene.one(shared, "enqueue headrace.deliver"), "run headrace.deliver")
    sent = scene.one(delivery, "deliver webhook")
    assert scene.webhook.headers["traceparent"] == f"00-{scene.trace}-{sent.id}-01"
    # And there is nothing else: no span of these has been lost, and none was made twice.
    by_id = {span.id: span for span in mine}
    assert len(by_id) == len(mine)
    assert all(span.parent in by_id or span.parent == scene.caller for span in mine)
    assert sorted(span.name for span in mine if span.name.startswith("run ")) == [
        *("run headrace.deliver", "run headrace.publish"),
        *("run order", "run order", "run part", "run part"),
    ]
    assert sum(span.name.startswith("stage ") for span in mine) == 5


def test_kinds_and_services_are_told(scene: Scene) -> None:
    named = scene.collector.named
    [request], [enqueued] = named("POST /jobs"), named("enqueue order")
    assert (request.kind, enqueued.kind) == (SERVER, PRODUCER)
    assert {span.kind for span in named("run order")} == {CONSUMER}
    assert named("deliver webhook")[0].kind == CLIENT
    assert {request.service, enqueued.service} == {"headrace-server"}
    assert {span.service for span in named("run order") + named("own work")} == {"headrace-worker"}
    attributes = named("run order")[0].attributes
    assert attributes["messaging.system"] == "headrace"
    assert attributes["messaging.message.id"] == scene.job_id
    assert attributes["messaging.destination.name"] == "default"
    assert attributes["headrace.attempt"] == 1
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["http.route"] == "/jobs"


def test_times_are_nested_and_in_order(scene: Scene) -> None:
    by_id = {span.id: span for span in scene.collector.spans if span.trace == scene.trace}
    # A job goes on after the call that enqueued it; everything else is within its parent.
    later = ("run ", "wait ")
    for span in by_id.values():
        assert span.begun <= span.ended
        parent = by_id.get(span.parent)
        if parent is None:
            continue
        if span.name.startswith(later):
            assert parent.begun <= span.ended
        else:
            assert parent.begun <= span.begun, (parent.name, span.name)
            assert span.ended <= parent.ended, (parent.name, span.name)
    named = scene.collector.named
    for task in ("order", "part"):
        for wait, run in zip(named(f"wait {task}"), named(f"run {task}"), strict=True):
            assert wait.ended <= run.begun or task == "part"
    fetch, parse = named("stage fetch")[0], named("stage parse")[0]
    assert fetch.ended <= parse.begun
    first, second = named("run order")
    assert first.ended <= second.begun
    assert all(first.begun <= part.begun <= second.begun for part in named("run part"))


def test_no_arguments_results_or_secrets_are_in_it(scene: Scene) -> None:
    everything = b"".join(scene.collector.bodies)
    for secret in (b"hunter2", b"o-17"):
        assert secret not in everything


def test_the_same_numbers_go_out_by_otlp(scene: Scene) -> None:
    metrics = scene.collector.metrics
    told = {line.split()[2] for line in scene.exposition.splitlines() if line.startswith("# TYPE")}
    # A family without a series is a name only.
    assert set(metrics) <= {name.removesuffix("_total") for name in told}
    points = metrics["headrace_attempts"].sum.data_points
    assert metrics["headrace_attempts"].sum.is_monotonic
    by = {
        tuple(sorted((each.key, each.value.string_value) for each in point.attributes)): point
        for point in points
    }
    done = by[("outcome", "completed"), ("queue", "default"), ("task", "part")]
    assert done.as_int == 2


def test_logs_are_json_and_know_job_and_trace(scene: Scene) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in scene.worker_log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    [fetching] = [line for line in lines if line["message"] == "fetching o-17"]
    stage = scene.collector.named("stage fetch")[0]
    assert fetching["logger"] == "shop.orders"
    assert fetching["job"] == scene.job_id
    assert (fetching["task"], fetching["queue"], fetching["attempt"]) == ("order", "default", 1)
    assert (fetching["trace_id"], fetching["span_id"]) == (scene.trace, stage.id)
    # From a child process: by the context, and by a logger of its own.
    for logger, text in (("headrace.job", "measuring"), ("shop.parts", "a line of its own\nfor")):
        found = [line for line in lines if line["logger"] == logger]
        assert len(found) == 2, lines
        runs = {span.attributes["messaging.message.id"]: span for span in runs_of(scene, "part")}
        for line in found:
            assert line["message"].startswith(text)
            assert line["task"] == "part"
            assert line["trace_id"] == scene.trace
            assert line["span_id"] == runs[line["job"]].id
    assert "\x1b" not in scene.worker_log


def runs_of(scene: Scene, task: str) -> list[Got]:
    return scene.collector.named(f"run {task}")
