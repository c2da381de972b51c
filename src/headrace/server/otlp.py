"""The numbers of `/metrics` by OTLP as well, where the `OTEL_*` variables ask for metrics.

The same series under the same names, from the same counters: nothing is counted a second time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidSetting
from headrace.loops.loop import Loop
from headrace.monitor.metrics.text import PREFIX, Metric
from headrace.server.metrics import read_metrics
from headrace.telemetry import BOUNDS
from headrace.tracing import INSTALL, wanted
from headrace.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

    from headrace.server.service import Service

log = logging.getLogger("headrace.tracing")

INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
DEFAULT_INTERVAL = 60_000.0
# The last numbers, when a server stops.
LAST_SECONDS = 5.0
# Counters are of all workers that there ever were, and older than this server.
UNKNOWN = 0


def metrics_export(service: Service) -> MetricsExport | None:
    """Return the loop that sends the numbers; None if nobody asked for it."""
    if service.app.settings.tracing == "off" or not wanted("metrics"):
        return None
    try:
        from headrace.tracing.set_up import exporters, resource  # noqa: PLC0415 - an extra

        about = resource("headrace-server")
        found = list(exporters("metrics"))
    except ModuleNotFoundError as error:
        log.warning("OTEL_* variables ask for metrics, but %s is missing; %s", error.name, INSTALL)
        return None
    return MetricsExport(service, found, about, interval())


def interval() -> float:
    """Return how often to send, in seconds."""
    text = os.environ.get(INTERVAL, "").strip()
    try:
        milliseconds = float(text or DEFAULT_INTERVAL)
    except ValueError:
        milliseconds = 0.0
    if not milliseconds > 0:
        raise InvalidSetting(f"{INTERVAL} is {text!r}; give milliseconds, such as 60000")
    return milliseconds / 1_000


class MetricsExport(Loop):
    """Sends all numbers every so often, and once more at the end."""

    name = "metrics by OTLP"

    def __init__(
        self, service: Service, exporters: list[Any], resource: Any, seconds: float
    ) -> None:
        super().__init__()
        self._service = service
        self._exporters = exporters
        self._resource = resource
        self._seconds = seconds

    async def tick(self) -> float:
        """Send the numbers as they are now."""
        data = as_otlp(await read_metrics(self._service), self._resource, time.time_ns())
        for exporter in self._exporters:
            # It blocks, and tells of trouble by its own logger.
            await asyncio.to_thread(exporter.export, data)
        return self._seconds

    async def stop(self, patience: float = LAST_SECONDS) -> None:
        """Send the last numbers, if somebody takes them, and stop."""
        await super().stop(patience)
        try:
            async with asyncio.timeout(patience):
                await self.tick()
        except (Exception, asyncio.CancelledError) as error:
            log.warning("The last metrics were not sent: %s", type(error).__name__)
        for exporter in self._exporters:
            await asyncio.to_thread(exporter.shutdown)


def as_otlp(metrics: Iterable[Metric], resource: Any, now: int) -> MetricsData:
    """Return metrics as OpenTelemetry has them, with the names that Prometheus shows."""
    from opentelemetry.sdk.metrics import export  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    cumulative = export.AggregationTemporality.CUMULATIVE
    made = []
    for metric in metrics:
        data: Any
        if metric.kind == "histogram":
            points = [
                export.HistogramDataPoint(
                    attributes=metric.at(place),
                    start_time_unix_nano=UNKNOWN,
                    time_unix_nano=now,
                    count=values.count,
                    sum=values.total,
                    bucket_counts=values.counts,
                    explicit_bounds=BOUNDS,
                    # Which were the least and the greatest nobody has counted.
                    min=None,  # type: ignore[arg-type]
                    max=None,  # type: ignore[arg-type]
                )
                for place, values in metric.histograms
            ]
            data = export.Histogram(points, cumulative)
        else:
            numbers = [
                export.NumberDataPoint(metric.at(place), UNKNOWN, now, _number(value))
                for place, value in metric.values
            ]
            data = export.Sum(numbers, cumulative, True) if metric.kind == "counter" else None
            data = data or export.Gauge(numbers)
        if data.data_points:
            made.append(export.Metric(f"{PREFIX}{metric.name}", metric.words, "", data))
    scope = export.ScopeMetrics(InstrumentationScope("headrace", __version__), made, "")
    return export.MetricsData([export.ResourceMetrics(resource, [scope], "")])


def _number(value: float) -> float:
    """Return what is sent: yes and no are 1 and 0, counts stay whole numbers."""
    return int(value) if isinstance(value, bool) else value
