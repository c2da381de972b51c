"""Spans: of enqueuing, waiting, attempts, stages, events out and requests in.

    caller > enqueue TASK > wait TASK
                          > run TASK > stage NAME
                                     > enqueue CHILD > run CHILD
                                     > publish TYPE > run headrace.publish > … > deliver KIND

A job carries the context of its enqueue span in its `meta`, so whoever runs it, however often, has
the right parent. No span has arguments, results or the text of a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context, attach
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from headrace.model.job import ClaimedJob, NewJob
from headrace.model.outcome import Failure
from headrace.tracing.attributes import of_attempt, of_enqueuing, of_new_job
from headrace.tracing.carrier import into_meta, of_meta
from headrace.version import __version__

_propagator = TraceContextTextMapPropagator()


def inject() -> dict[str, str]:
    """Return the W3C headers of the current span; none without one."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier


class Tracing:
    """Makes the spans of a process, by whichever tracer provider the process has."""

    def __init__(self) -> None:
        # A proxy: it finds a provider that is set later.
        self._tracer = trace.get_tracer("headrace", __version__)

    # -- enqueuing -----------------------------------------------------------------------------

    @contextmanager
    def enqueuing(self, job: NewJob, name: str | None = None) -> Iterator[NewJob]:
        """Make a span while a job is stored; yields the job with the context of that span. What
        its `meta` names is the parent, and otherwise the current span.
        """
        with self._producing(name or f"enqueue {job.task}", job.meta, of_new_job(job)):
            yield _carrying(job)

    @contextmanager
    def enqueuing_together(
        self, jobs: Sequence[NewJob], name: str | None = None
    ) -> Iterator[list[NewJob]]:
        """The same for jobs that are stored by one call: one span for all of them. Those whose
        `meta` names another parent keep it.
        """
        if len(jobs) == 1:
            with self.enqueuing(jobs[0], name) as job:
                yield [job]
            return
        tasks, queues = {job.task for job in jobs}, {job.queue for job in jobs}
        about: dict[str, Any] = {"messaging.batch.message_count": len(jobs)}
        if len(queues) == 1:
            about["messaging.destination.name"] = next(iter(queues))
        shown = f"enqueue {next(iter(tasks))}" if len(tasks) == 1 else "enqueue jobs"
        with self._producing(name or shown, None, about):
            yield [job if of_meta(job.meta) else _carrying(job) for job in jobs]

    @contextmanager
    def enqueuing_many(self) -> Iterator[Callable[[NewJob], NewJob]]:
        """The same for jobs that are stored as they come; yields what gives each its context."""
        with self._span("enqueue jobs", None, SpanKind.PRODUCER, of_enqueuing({})) as span:
            carrier = inject()
            count = 0

            def carrying(job: NewJob) -> NewJob:
                nonlocal count
                count += 1
                if not carrier or of_meta(job.meta):
                    return job
                return msgspec.structs.replace(job, meta=into_meta(job.meta, carrier))

            try:
                yield carrying
            finally:
                span.set_attribute("messaging.batch.message_count", count)

    @contextmanager
    def enqueuing_each(self, jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
        """The same for jobs that have nothing to do with each other: a span for each."""
        spans: list[Span] = []
        made: list[NewJob] = []
        for job in jobs:
            parent = self.context_of(of_meta(job.meta))
            about = of_enqueuing(of_new_job(job))
            span = self._tracer.start_span(
                f"enqueue {job.task}", parent, SpanKind.PRODUCER, attributes=about
            )
            spans.append(span)
            made.append(_carrying(job, trace.set_span_in_context(span)))
        try:
            yield made
        except BaseException as error:
            for span in spans:
                _failed(span, error)
            raise
        finally:
            for span in spans:
                span.end()

    @contextmanager
    def _producing(self, name: str, meta: bytes | None, about: dict[str, Any]) -> Iterator[Span]:
        given = of_meta(meta)
        parent = self.context_of(given) if given else None
        with self._span(name, parent, SpanKind.PRODUCER, of_enqueuing(about)) as span:
            yield span

    @contextmanager
    def _span(
        self,
        name: str,
        parent: Context | None,
        kind: SpanKind,
        about: Mapping[str, Any] | None = None,
    ) -> Iterator[Span]:
        """Make a span, the current one inside. An error is noted by its type alone."""
        span = self._tracer.start_span(name, parent, kind, dict(about or {}))
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield span
            except Exception as error:
                _failed(span, error)
                raise

    # -- attempts and stages -------------------------------------------------------------------

    def begin_attempt(self, job: ClaimedJob) -> Span:
        """Begin the span of an attempt, and make it the current one until the context variables of
        the caller are gone. The span of its wait goes before it.
        """
        span = self.begin_member(job)
        self.enter(span)
        return span

    def begin_member(self, job: ClaimedJob) -> Span:
        """Begin the span of an attempt at a job of a chunk. It is not the current one: a call works
        for several.
        """
        parent = self.context_of(of_meta(job.meta))
        now = time.time_ns()
        if trace.get_current_span(parent).get_span_context().is_valid:
            began = now - max(round(job.wait * 1e9), 0)
            attributes: dict[str, Any] = {
                "headrace.task": job.task,
                "headrace.attempt": job.attempt,
            }
            self._tracer.start_span(
                f"wait {job.task}", parent, attributes=attributes, start_time=began
            ).end(now)
        return self._tracer.start_span(
            f"run {job.task}", parent, SpanKind.CONSUMER, attributes=of_attempt(job), start_time=now
        )

    def begin_chunk(self, task: str, members: Sequence[Span]) -> Span:
        """Begin the span of one call for several jobs, linked to their spans, and make it the
        current one as `begin_attempt` does.
        """
        about: dict[str, Any] = {
            "headrace.task": task,
            "messaging.batch.message_count": len(members),
        }
        links = [trace.Link(member.get_span_context()) for member in members]
        span = self._tracer.start_span(
            f"chunk {task}", Context(), SpanKind.CONSUMER, attributes=about, links=links
        )
        self.enter(span)
        return span

    def enter(self, span: Span) -> None:
        """Make a span the current one until the context variables of the caller are gone."""
        attach(trace.set_span_in_context(span, Context()))

    def end_attempt(self, span: Span, outcome: str, failure: Failure | None) -> None:
        """End the span of an attempt. `failure` has nothing in it that has to be hidden."""
        span.set_attribute("headrace.outcome", outcome)
        if failure is not None:
            _record(span, failure)
        span.end()

    @contextmanager
    def stage(self, name: str, describe: Callable[[Exception], Failure | None]) -> Iterator[None]:
        """Make a span while the function of a stage runs, with all its tries. `describe` returns
        what to tell of an error; None if it is not one.
        """
        plain = name.partition("[")[0]
        span = self._tracer.start_span(f"stage {plain}", attributes={"headrace.stage": name})
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except Exception as error:
                failure = describe(error)
                if failure is not None:
                    _record(span, failure)
                raise

    # -- events out, requests in ---------------------------------------------------------------

    @contextmanager
    def delivering(self, kind: str, destination: str, event_type: str) -> Iterator[dict[str, str]]:
        """Make a span while an event is sent; yields the headers to send along. No address: it may
        hold a secret.
        """
        about = {
            "messaging.system": kind,
            "messaging.operation.name": "deliver",
            "messaging.operation.type": "send",
            "headrace.destination": destination,
            "headrace.event_type": event_type,
        }
        span_kind = SpanKind.CLIENT if kind == "webhook" else SpanKind.PRODUCER
        with self._span(f"deliver {kind}", None, span_kind, about):
            yield inject()

    def is_inside(self, headers: Mapping[str, str]) -> bool:
        """Return whether an application around this one has made a span for a request already. One
        of another trace than the caller's is not that.
        """
        current = trace.get_current_span()
        above = trace.get_current_span(self.context_of(headers)).get_span_context()
        return current.is_recording() and (
            not above.is_valid or above.trace_id == current.get_span_context().trace_id
        )

    @contextmanager
    def serving(self, headers: Mapping[str, str], about: Mapping[str, Any]) -> Iterator[Span]:
        """Make a span while a request is served, below that of the caller, by its headers."""
        name, parent = str(about["http.request.method"]), self.context_of(headers)
        with self._span(name, parent, SpanKind.SERVER, about) as span:
            yield span

    def answered(self, span: Span, status: int) -> None:
        """Note how a request was answered. What is the caller's mistake is no error of ours."""
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_attribute("error.type", str(status))
            span.set_status(StatusCode.ERROR)

    @contextmanager
    def commanding(self, name: str, headers: Mapping[str, str]) -> Iterator[None]:
        """Make a span while a command runs."""
        parent = self.context_of(headers) if headers else None
        with self._span(name, parent, SpanKind.INTERNAL):
            yield

    # -- context -------------------------------------------------------------------------------

    def context_of(self, carrier: Mapping[str, str]) -> Context:
        """Return the context that these headers name; an empty one without them."""
        return _propagator.extract(carrier, Context())

    def current(self) -> dict[str, str]:
        """Return the headers of the current span; none without one."""
        return inject()

    def continue_from(self, carrier: Mapping[str, str]) -> None:
        """Make the span that these headers name the current one, until the context variables of
        the caller are gone.
        """
        attach(self.context_of(carrier))


def _carrying(job: NewJob, context: Context | None = None) -> NewJob:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    # A copy: the caller may enqueue the same one again, below another span.
    return msgspec.structs.replace(job, meta=into_meta(job.meta, carrier)) if carrier else job


def _record(span: Span, failure: Failure) -> None:
    about = {"exception.type": failure.type, "exception.message": failure.message}
    if failure.traceback is not None:
        about["exception.stacktrace"] = failure.traceback
    span.add_event("exception", about)
    span.set_attribute("error.type", failure.type)
    span.set_status(StatusCode.ERROR, f"{failure.type}: {failure.message}")


def _failed(span: Span, error: BaseException) -> None:
    """Note which error it was. Its text may quote arguments: that of the attempt is looked at."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(StatusCode.ERROR, type(error).__name__)
