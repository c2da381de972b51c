"""A module that sets up a tracer provider of its own, in child processes only."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

import headrace
from headrace.orchestrator.isolation.supervisor import MARKER

app = headrace.App("sqlite://")
FILE = "OWN_PROVIDER_FILE"


class Write(SpanProcessor):
    """Writes the names of spans that have ended."""

    def on_end(self, span: ReadableSpan) -> None:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{span.name}\n")


if MARKER in os.environ:
    provider = TracerProvider()
    provider.add_span_processor(Write())
    trace.set_tracer_provider(provider)


@app.task(isolate="process", retries=0)
def own() -> None:
    with trace.get_tracer("own").start_as_current_span("own work"):
        pass
