"""Spans of child processes, sent to the worker, which exports them with its own.

So a child opens no connection, and what has ended in it is not lost when it is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext


class SpanPlace(msgspec.Struct, frozen=True):
    """Where a span is: its trace, its own id, whether it is sampled, and the vendors' state."""

    trace_id: str
    span_id: str
    flags: int
    state: str = ""


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened in a span."""

    name: str
    at: int
    attributes: dict[str, Any]


class EndedSpan(msgspec.Struct, tag=True, kw_only=True):
    """A span that has ended in a child, as plain data. Times are in nanoseconds."""

    name: str
    place: SpanPlace
    parent: SpanPlace | None
    kind: int
    begun: int
    ended: int
    status: int
    description: str | None
    scope: str
    scope_version: str | None
    attributes: dict[str, Any]
    events: list[SpanEvent]
    links: list[tuple[SpanPlace, dict[str, Any]]]


def forward_spans(send: Callable[[EndedSpan], None]) -> None:
    """In the child: send all spans that end here, unless its modules have set up a provider."""
    from opentelemetry import trace  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider  # noqa: PLC0415

    from headrace.tracing import has_provider  # noqa: PLC0415

    if has_provider():
        return

    class Forward(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            # Whatever goes wrong, it must not fail the handler that ends a span.
            try:
                if span.context.trace_flags.sampled:
                    send(plain(span))
            except Exception:  # noqa: S110 - the worker is gone, or this is a forked copy
                pass

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Forward())
    trace.set_tracer_provider(provider)


def plain(span: ReadableSpan) -> EndedSpan:
    """Return a span as plain data."""
    scope = span.instrumentation_scope
    return EndedSpan(
        name=span.name,
        place=_place(span.context),
        parent=None if span.parent is None else _place(span.parent),
        kind=span.kind.value,
        begun=span.start_time or 0,
        ended=span.end_time or 0,
        status=span.status.status_code.value,
        description=span.status.description,
        scope="" if scope is None else scope.name,
        scope_version=None if scope is None else scope.version,
        attributes=_values(span.attributes),
        events=[
            SpanEvent(each.name, each.timestamp, _values(each.attributes)) for each in span.events
        ],
        links=[(_place(each.context), _values(each.attributes)) for each in span.links],
    )


def take_span(ended: EndedSpan) -> None:
    """In the worker: export a span of a child with one's own."""
    from opentelemetry import trace  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import Event, ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    provider: Any = trace.get_tracer_provider()
    # There is no public way to hand in a span that was made elsewhere.
    processor = getattr(provider, "_active_span_processor", None)
    if processor is None:
        return
    processor.on_end(
        ReadableSpan(
            ended.name,
            context=_context(ended.place),
            parent=None if ended.parent is None else _context(ended.parent),
            resource=provider.resource,
            attributes=ended.attributes,
            events=[Event(each.name, each.attributes, each.at) for each in ended.events],
            links=[trace.Link(_context(place), about) for place, about in ended.links],
            kind=trace.SpanKind(ended.kind),
            status=trace.Status(trace.StatusCode(ended.status), ended.description),
            start_time=ended.begun,
            end_time=ended.ended,
            instrumentation_scope=InstrumentationScope(ended.scope, ended.scope_version),
        )
    )


def _place(context: SpanContext) -> SpanPlace:
    return SpanPlace(
        format(context.trace_id, "032x"),
        format(context.span_id, "016x"),
        int(context.trace_flags),
        context.trace_state.to_header(),
    )


def _context(place: SpanPlace) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState  # noqa: PLC0415

    return SpanContext(
        int(place.trace_id, 16),
        int(place.span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(place.flags),
        trace_state=TraceState.from_header([place.state] if place.state else []),
    )


def _values(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Plain values only: whatever else somebody has put there is told as text."""
    return {str(name): _value(value) for name, value in (attributes or {}).items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_value(each) for each in value]
    return str(value)
