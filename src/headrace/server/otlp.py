"""The numbers of `/metrics` by OTLP as well, where the `OTEL_*` variables ask for metrics.

The same series under the same names, from the same counters: nothing is counted a second time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidSetting
from headrace.loops.loop import Loop
from headrace.server.metrics import read_numbers
from headrace.tracing import INSTALL, wanted
from headrace.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

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
        numbers = (await read_numbers(self._service)).collect()
        data = as_otlp(numbers, self._resource, time.time_ns())
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
    """Return families of Prometheus as OpenTelemetry has them, with the same names."""
    from opentelemetry.sdk.metrics import export  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    cumulative = export.AggregationTemporality.CUMULATIVE
    made = []
    for family in metrics:
        data: Any
        if family.type == "histogram":
            points = [
                export.HistogramDataPoint(
                    attributes=labels,
                    start_time_unix_nano=UNKNOWN,
                    time_unix_nano=now,
                    **counted,
                )
                for labels, counted in _histograms(family.samples)
            ]
            data = export.Histogram(points, cumulative)
        else:
            numbers = [
                export.NumberDataPoint(dict(each.labels), UNKNOWN, now, each.value)
                for each in family.samples
            ]
            data = export.Sum(numbers, cumulative, True) if family.type == "counter" else None
            data = data or export.Gauge(numbers)
        if data.data_points:
            made.append(export.Metric(family.name, family.documentation, "", data))
    scope = export.ScopeMetrics(InstrumentationScope("headrace", __version__), made, "")
    return export.MetricsData([export.ResourceMetrics(resource, [scope], "")])


def _histograms(samples: Iterable[Sample]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Gather the samples of each series: its buckets count what is at or below their bound."""
    found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for each in samples:
        labels = {name: value for name, value in each.labels.items() if name != "le"}
        series = found.setdefault(tuple(sorted(labels.items())), {"buckets": [], "sum": 0.0})
        if "le" in each.labels:
            series["buckets"].append((float(each.labels["le"]), int(each.value)))
        elif each.name.endswith("_sum"):
            series["sum"] = each.value
    for place, series in found.items():
        buckets = sorted(series["buckets"])
        counts = [count for _, count in buckets]
        yield (
            dict(place),
            {
                # Which were the least and the greatest nobody has counted.
                "min": None,
                "max": None,
                "count": counts[-1],
                "sum": series["sum"],
                "bucket_counts": [
                    count - before for before, count in zip([0, *counts], counts, strict=False)
                ],
                "explicit_bounds": [bound for bound, _ in buckets[:-1]],
            },
        )
