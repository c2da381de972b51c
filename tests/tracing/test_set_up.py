"""Who sets up what makes and sends spans, and what it may cost the jobs: nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import headrace
from headrace.clock import Clock
from headrace.server.app import create
from headrace.server.otlp import metrics_export
from headrace.tracing import find_tracing
from headrace.tracing.set_up import resource, set_up
from tests.support.processes import Processes, until
from tests.tracing import handlers, own_provider
from tests.tracing.conftest import Spans, about, work
from tests.tracing.logging_program import app as logging_app

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_a_program_keeps_the_provider_that_it_has(
    spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    before = trace.get_tracer_provider()
    assert set_up("auto", "headrace-worker") is None
    assert trace.get_tracer_provider() is before


def test_the_name_of_the_service_is_that_of_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    assert resource("headrace-worker").attributes["service.name"] == "headrace-worker"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=orders")
    assert resource("headrace-worker").attributes["service.name"] == "orders"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    assert resource("headrace-worker").attributes["service.name"] == "shop"


async def test_off_sends_no_metrics_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    for mode, sends in (("auto", True), ("off", False)):
        async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", tracing=mode) as app:
            service = create(app).state.headrace.get()
            assert (metrics_export(service) is not None) is sends


def test_what_is_the_mistake_of_a_caller_is_no_error_of_ours(spans: Spans) -> None:
    tracing = find_tracing("on")
    assert tracing is not None
    for status in (404, 500):
        with tracing.serving({}, {"http.request.method": "GET"}) as span:
            tracing.answered(span, status)
    wrong, broken = spans.all
    assert wrong.status.status_code is StatusCode.UNSET
    assert (broken.status.status_code, about(broken)["error.type"]) == (StatusCode.ERROR, "500")


async def test_a_stage_that_asks_for_later_has_not_failed(spans: Spans, app: headrace.App) -> None:
    asked = []

    async def ask() -> int:
        asked.append(1)
        if len(asked) == 1:
            raise headrace.Snooze(0.0)
        return 1

    @app.task
    async def patient(ctx: headrace.Context) -> int:
        return await ctx.stage("ask", ask)

    job = await patient.enqueue()
    await work(app)
    assert (await app.get(job.id)).result == 1
    ends = [*spans.named("stage ask"), *spans.named("run patient")]
    assert [each.status.status_code for each in ends] == [StatusCode.UNSET] * 4
    assert [about(each)["headrace.outcome"] for each in ends[2:]] == ["snoozed", "completed"]


async def test_a_job_that_is_cancelled_has_not_failed(spans: Spans, app: headrace.App) -> None:
    running = asyncio.Event()

    @app.task
    async def long() -> None:
        running.set()
        await asyncio.sleep(600)

    job = await long.enqueue()
    async with headrace.JobOrchestrator(app):
        await asyncio.wait_for(running.wait(), 60)
        await app.cancel(job.id)
        await until(lambda: spans.named("run long"), "the end of the attempt", 60)
    run = spans.one("run long")
    assert about(run)["headrace.outcome"] == "cancelled"
    assert run.status.status_code is StatusCode.UNSET
    assert run.events == ()


async def test_spans_of_child_processes_never_fail_their_handler(
    spans: Spans, tmp_path: Path
) -> None:
    app = handlers.app
    app.reconfigure(headrace.config.load(url=f"sqlite:///{tmp_path}/jobs.db"), clock=Clock())
    async with app:
        job = await handlers.odd.enqueue()
        await work(app)
        done = await app.get(job.id)
        assert done.result == 0, done.error
    odd = about(spans.one("odd"))
    assert (odd["half"], list(odd["list"])) == ("a ?", ["?"])
    assert spans.named("of a copy") == []


async def test_a_child_process_keeps_the_provider_of_its_module(
    spans: Spans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spans"
    monkeypatch.setenv(own_provider.FILE, str(file))
    app = own_provider.app
    app.reconfigure(headrace.config.load(url=f"sqlite:///{tmp_path}/jobs.db"), clock=Clock())
    async with app:
        await own_provider.own.enqueue()
        await work(app)
    assert file.read_text() == "own work\n"
    assert spans.named("own work") == []
    assert about(spans.one("run own"))["headrace.outcome"] == "completed"


@contextlib.asynccontextmanager
async def a_deaf_collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A collector that takes what is sent, and never answers."""
    taken: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                taken.append(data)
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", taken
    finally:
        server.close()


async def test_a_collector_that_hangs_holds_up_no_job_and_no_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    program = "tests.tracing.logging_program"
    async with a_deaf_collector() as (collector, taken), headrace.App(url) as app:
        with Processes(tmp_path) as programs:
            worker = programs.headrace(
                *("worker", "--app", program, "--url", url),
                **{ENDPOINT: collector, "OTEL_BSP_SCHEDULE_DELAY": "50"},
                OTEL_EXPORTER_OTLP_TIMEOUT="600",
            )
            for _ in range(3):
                job = await app.enqueue_job(logging_app.tasks["plain"].job("nothing"))

                async def over(job: headrace.Job = job) -> bool:
                    assert worker.code is None, worker.said
                    return (await app.get(job.id)).status.final

                await until(over, "the end of the job", 90)
                await until(lambda: taken, "spans of the job", 60)
            worker.terminate()
            assert await worker.ended(60) == 0, worker.said
        assert "The last spans were not sent within 5 s" in worker.said
