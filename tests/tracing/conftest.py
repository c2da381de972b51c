"""Spans that end in this process, by a tracer provider that is gone with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

import headrace
import headrace.tracing
from tests.dispatchers.events.conftest import brokers, scene, stream  # noqa: F401 - fixtures


class Spans:
    """The spans that have ended so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        found = self.named(name)
        assert len(found) == 1, [span.name for span in self.all]
        return found[0]

    def below(self, parent: ReadableSpan) -> list[str]:
        return [span.name for span in self.all if parent_of(span) == id_of(parent)]


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def in_memory(monkeypatch: pytest.MonkeyPatch, sampler: Sampler | None = None) -> Spans:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # There is one provider for each process, for good: a test has to put it in and take it out.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(headrace.tracing, "_shared", None)
    return Spans(exporter)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """All spans of this process."""
    return in_memory(monkeypatch)


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """Only spans whose parent is sampled."""
    return in_memory(monkeypatch, ParentBased(TraceIdRatioBased(0.0)))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on the embedded engine. A test names `spans` before it."""
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db") as made:
        yield made
        assert await made.engine.audit() == []


async def work(app: headrace.App) -> None:
    """Run everything that is due."""
    await headrace.JobOrchestrator(app).run_until_idle()
