"""Metrics for Prometheus: of the engine, and what all workers have ever counted together."""

from __future__ import annotations

from headrace.monitor.metrics.text import CONTENT_TYPE, Metric, gauge, text_in_pieces
from headrace.server.service import Service


async def exposition(service: Service) -> tuple[bytes, str]:
    """Return the text and its content type. While the engine is away it has what it can."""
    return await text_in_pieces(await read_metrics(service)), CONTENT_TYPE


async def read_metrics(service: Service) -> list[Metric]:
    """Return all metrics as they are now."""
    streams = gauge("event_streams", "Open event streams.", [], [([], len(service.subscribers))])
    return await service.metrics.read([streams])
