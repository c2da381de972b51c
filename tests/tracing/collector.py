"""A receiver of OTLP over real HTTP, which decodes what it gets by `opentelemetry-proto`.

A collector is not to be had as a wheel or from Debian.
"""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Got(msgspec.Struct):
    """A span as the collector got it."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    kind: int
    begun: int
    ended: int
    failed: bool
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]


class Collector:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.spans: list[Got] = []
        self.metrics: dict[str, Any] = {}
        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def named(self, name: str) -> list[Got]:
        """The spans of this name, in the order in which they began."""
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.begun)

    def children(self) -> dict[str, list[Got]]:
        """Spans by the id of their parent."""
        found: dict[str, list[Got]] = defaultdict(list)
        for span in sorted(self.spans, key=lambda span: span.begun):
            found[span.parent].append(span)
        return found

    def tree(self, top: str, depth: int = 0) -> str:
        """What is below a span, for people."""
        return "".join(
            f"{'  ' * depth}{span.name} [{span.service}]\n{self.tree(span.id, depth + 1)}"
            for span in self.children()[top]
        )

    def _handler(collector) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.bodies.append(body)
                if self.path == "/v1/traces":
                    collector.spans += spans_of(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/metrics":
                    collector.metrics |= metrics_of(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        return Handler

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def spans_of(request: Any) -> Iterator[Got]:
    for resource in request.resource_spans:
        service = values(resource.resource.attributes).get("service.name", "")
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Got(
                    service=service,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    name=span.name,
                    kind=span.kind,
                    begun=span.start_time_unix_nano,
                    ended=span.end_time_unix_nano,
                    failed=span.status.code == 2,
                    attributes=values(span.attributes),
                    events=[(each.name, values(each.attributes)) for each in span.events],
                )


def metrics_of(request: Any) -> dict[str, Any]:
    return {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextlib.contextmanager
def a_collector() -> Iterator[Collector]:
    made = Collector()
    made.start()
    try:
        yield made
    finally:
        made.stop()
