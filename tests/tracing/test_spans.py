"""What is a span, whose child it is, and what it tells."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import headrace
from headrace.clock import Clock
from headrace.model.job import JobFilter
from tests.tracing import handlers
from tests.tracing.conftest import Spans, about, id_of, parent_of, work

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ABOVE = f"00-{TRACE}-{SPAN}-01"


async def test_a_job_is_below_its_caller(spans: Spans, app: headrace.App) -> None:
    @app.task
    async def send(to: str) -> str:
        return to

    with trace.get_tracer("caller").start_as_current_span("caller"):
        job = await send.enqueue("ada@example.com")
    await work(app)
    caller, enqueued = spans.one("caller"), spans.one("enqueue send")
    wait, run = spans.one("wait send"), spans.one("run send")
    assert parent_of(enqueued) == id_of(caller)
    assert parent_of(wait) == parent_of(run) == id_of(enqueued)
    assert (enqueued.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert about(run)["messaging.message.id"] == about(enqueued)["messaging.message.id"] == job.id
    assert about(run)["headrace.outcome"] == "completed"
    assert run.status.status_code is StatusCode.UNSET
    assert wait.end_time == run.start_time
    # The job carries the span that enqueued it.
    stored = await app.get(job.id)
    assert stored.meta["traceparent"].split("-")[2] == f"{id_of(enqueued):016x}"
    # The job that the caller was given says so, too.
    assert job.meta == stored.meta
    everything = "".join(span.to_json() for span in spans.all)
    assert "ada@example.com" not in everything


async def test_a_context_in_meta_is_the_parent(spans: Spans, app: headrace.App) -> None:
    @app.task
    async def touch() -> None: ...

    with trace.get_tracer("caller").start_as_current_span("caller"):
        job = await touch.options(meta={"traceparent": ABOVE, "by": "ada"}).enqueue()
    enqueued = spans.one("enqueue touch")
    assert f"{parent_of(enqueued):016x}" == SPAN
    assert (await app.get(job.id)).meta == {
        "by": "ada",
        "traceparent": f"00-{TRACE}-{id_of(enqueued):016x}-01",
    }


@pytest.mark.parametrize("wrong", ["00-zz-b7-01", f"00-{'0' * 32}-{SPAN}-01", 7, ABOVE + "x"])
async def test_what_is_no_context_is_ignored(
    spans: Spans, app: headrace.App, wrong: object
) -> None:
    @app.task
    async def touch() -> None: ...

    await touch.options(meta={"traceparent": wrong}).enqueue()
    assert parent_of(spans.one("enqueue touch")) is None


async def test_one_call_for_many_jobs_is_one_span(spans: Spans, app: headrace.App) -> None:
    @app.task
    async def touch(number: int) -> None: ...

    jobs = [touch.job(number) for number in range(4)]
    jobs.append(touch.options(meta={"traceparent": ABOVE}).job(4))
    await app.enqueue_many(jobs)
    await work(app)
    enqueued = spans.one("enqueue jobs")
    assert about(enqueued)["messaging.batch.message_count"] == 5
    assert spans.below(enqueued).count("run touch") == 4
    [other] = [span for span in spans.named("run touch") if parent_of(span) != id_of(enqueued)]
    assert f"{parent_of(other):016x}" == SPAN
    # What the caller made is as it was: it may be enqueued again, below another span.
    assert [job.meta for job in jobs[:4]] == [None] * 4


async def test_each_attempt_is_a_span_and_tells_its_error(spans: Spans, app: headrace.App) -> None:
    @app.task(retry=headrace.RetryPolicy(retries=1, base=0.0, maximum=0.0))
    async def sign_in(ctx: headrace.Context, user: str, password: str) -> None:
        await ctx.stage("connect", connect, password)

    async def connect(text: str) -> None:
        raise ConnectionError(f"no door opens for {text}")

    await sign_in.enqueue("ada", "correct horse battery")
    await work(app)
    enqueued = spans.one("enqueue sign_in")
    first, second = spans.named("run sign_in")
    assert parent_of(first) == parent_of(second) == id_of(enqueued)
    assert [about(each)["headrace.attempt"] for each in (first, second)] == [1, 2]
    assert [about(each)["headrace.outcome"] for each in (first, second)] == ["retry", "failed"]
    for span in (first, second, *spans.named("stage connect")):
        assert span.status.status_code is StatusCode.ERROR
        [event] = span.events
        told = dict(event.attributes or {})
        assert told["exception.type"] == about(span)["error.type"] == "ConnectionError"
        assert told["exception.message"] == "no door opens for [redacted]"
        assert "in connect" in str(told["exception.stacktrace"])
    assert len(spans.named("stage connect")) == 2
    assert "battery" not in "".join(span.to_json() for span in spans.all)


async def test_arguments_that_do_not_fit_are_not_told(spans: Spans, app: headrace.App) -> None:
    @app.task
    async def add(number: int) -> None: ...

    await add.enqueue(71_717)
    del app.tasks["add"]

    @app.task(name="add")
    async def other(word: str) -> None: ...

    await work(app)
    run = spans.one("run add")
    assert about(run)["error.type"] == "InvalidArguments"
    assert "71717" not in run.to_json()


async def test_children_and_followers_are_below_the_attempt(
    spans: Spans, app: headrace.App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def leaf(number: int) -> int:
        return number

    @app.task
    async def top(ctx: headrace.Context) -> int:
        await ctx.stage("count", str, 1)
        numbers = await ctx.gather([leaf.job(1), leaf.job(2)])
        ctx.then(follow.job())
        return sum(numbers)

    @app.task
    async def follow() -> None: ...

    await top.options(meta={"user": "ada"}).enqueue()
    await work(app)
    first, second = spans.named("run top")
    assert about(first)["headrace.outcome"] == "snoozed"
    assert first.status.status_code is StatusCode.UNSET
    # The second run makes nothing again that the first has made.
    assert spans.below(first) == ["stage count", "enqueue leaf"]
    assert spans.below(second) == ["enqueue follow"]
    assert spans.below(spans.one("enqueue leaf")).count("run leaf") == 2
    assert spans.below(spans.one("enqueue follow")) == ["wait follow", "run follow"]
    assert {job.meta["user"] for job in (await app.list(JobFilter())).jobs} == {"ada"}


async def test_threads_and_their_own_spans_are_below(spans: Spans, app: headrace.App) -> None:
    def measured() -> int:
        with trace.get_tracer("own").start_as_current_span("in the stage"):
            return threading.get_ident()

    @app.task
    def plain(ctx: headrace.Context) -> None:
        with trace.get_tracer("own").start_as_current_span("in the handler"):
            asyncio.run(ctx.stage("measure", measured))

    await plain.enqueue()
    await work(app)
    assert spans.below(spans.one("run plain")) == ["in the handler"]
    assert spans.below(spans.one("in the handler")) == ["stage measure"]
    assert spans.below(spans.one("stage measure")) == ["in the stage"]


async def test_one_job_does_not_continue_the_trace_of_another(
    spans: Spans, app: headrace.App
) -> None:
    @app.task
    async def touch(number: int) -> None: ...

    for number in range(3):
        await touch.enqueue(number)
    await headrace.JobOrchestrator(app, max_workers=1).run_until_idle()
    runs = spans.named("run touch")
    assert len({span.context.trace_id for span in runs if span.context}) == 3


@pytest.mark.parametrize("name", ["in_thread", "on_loop"])
async def test_a_handler_that_does_not_stop_has_an_end_in_its_trace(
    spans: Spans, tmp_path: Path, name: str
) -> None:
    release = threading.Event()
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", grace_seconds=0.2)

    @app.task(retries=0, timeout=0.2)
    def in_thread() -> None:
        release.wait(60)

    @app.task(retries=0, timeout=0.2)
    async def on_loop() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    try:
        async with app:
            await app.enqueue(name)
            await work(app)
            run = spans.one(f"run {name}")
            assert about(run)["headrace.outcome"] == "timeout"
            assert run.status.status_code is StatusCode.ERROR
    finally:
        release.set()


async def test_schedules_begin_traces(spans: Spans, app: headrace.App) -> None:
    @app.task
    async def sweep() -> None: ...

    app.add_schedule(sweep, "* * * * *", name="nightly")
    with trace.get_tracer("caller").start_as_current_span("caller"):
        await app.trigger_schedule("nightly")
    await work(app)
    assert parent_of(spans.one("enqueue sweep")) == id_of(spans.one("caller"))
    assert parent_of(spans.one("run sweep")) == id_of(spans.one("enqueue sweep"))


async def test_child_processes_send_their_spans(spans: Spans, tmp_path: Path) -> None:
    app = handlers.app
    app.reconfigure(headrace.config.load(url=f"sqlite:///{tmp_path}/jobs.db"), clock=Clock())
    async with app:
        await handlers.parent.enqueue()
        await handlers.broken.enqueue("open sesame")
        await handlers.dying.enqueue()
        await work(app)
    run = spans.one("run parent")
    assert spans.below(run) == ["own work", "enqueue leaf"]
    own = spans.one("own work")
    assert spans.below(own) == ["enqueue leaf"]
    assert list(about(own)["sizes"]) == [1, 2]
    assert own.instrumentation_scope is not None
    assert own.instrumentation_scope.name == "own"
    assert len(spans.named("run leaf")) == 2
    failed = spans.one("run broken")
    assert failed.status.status_code is StatusCode.ERROR
    assert "sesame" not in failed.to_json()
    # What had ended in a process that died is not lost.
    assert parent_of(spans.one("last words")) == id_of(spans.one("run dying"))


async def test_what_is_not_sampled_stays_so(unsampled: Spans, app: headrace.App) -> None:
    @app.task
    async def top(ctx: headrace.Context, number: int) -> None:
        await ctx.gather([leaf.job()])

    @app.task
    async def leaf() -> None: ...

    job = await top.enqueue(1)
    sampled = await top.options(meta={"traceparent": ABOVE}).enqueue(2)
    await work(app)
    # Whoever goes on with it knows that it was not sampled.
    assert not int((await app.get(job.id)).meta["traceparent"][-2:], 16) & 1
    assert int((await app.get(sampled.id)).meta["traceparent"][-2:], 16) & 1
    assert {span.context.trace_id for span in unsampled.all if span.context} == {int(TRACE, 16)}
    assert len(unsampled.named("run leaf")) == 1


async def test_off_is_off(spans: Spans, tmp_path: Path) -> None:
    async with headrace.App(f"sqlite:///{tmp_path}/off.db", tracing="off") as app:

        @app.task
        async def touch(ctx: headrace.Context) -> None:
            await ctx.stage("count", str, 1)

        job = await touch.enqueue()
        await work(app)
        assert (await app.get(job.id)).meta == {}
    assert spans.all == []


@dataclass
class Row:
    number: int


async def test_a_chunk_has_a_span_and_each_of_its_jobs(spans: Spans, app: headrace.App) -> None:
    @app.task(chunk=5, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        with trace.get_tracer("handler").start_as_current_span("insert"):
            chunk[1].fail(ValueError("bad row"))

    with trace.get_tracer("caller").start_as_current_span("caller"):
        jobs = [await store.enqueue(number=number) for number in range(3)]
    await work(app)
    chunk, runs = spans.one("chunk store"), spans.named("run store")
    assert parent_of(spans.one("insert")) == id_of(chunk)
    assert parent_of(chunk) is None
    assert about(chunk)["messaging.batch.message_count"] == 3
    assert {link.context.span_id for link in chunk.links} == {id_of(run) for run in runs}
    # Each is below the call that enqueued it, and ends with its own outcome.
    enqueued = {
        about(span)["messaging.message.id"]: id_of(span) for span in spans.named("enqueue store")
    }
    found = {about(run)["messaging.message.id"]: run for run in runs}
    assert {job: parent_of(run) for job, run in found.items()} == enqueued
    outcomes = [about(found[job.id])["headrace.outcome"] for job in jobs]
    assert outcomes == ["completed", "failed", "completed"]
    assert found[jobs[1].id].status.status_code is StatusCode.ERROR
