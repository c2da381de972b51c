"""The bundle. What it brings is imported where it is used."""

from __future__ import annotations

import headrace
import headrace.bundles
from headrace_ingest.settings import IngestSettings

bundle = headrace.Bundle(
    "ingest",
    summary="Documents: read, masked, and found by meaning",
    settings=IngestSettings,
    register="headrace_ingest.pipeline:register",
    routes="headrace_ingest.routes:routes",
    commands="headrace_ingest.commands:commands",
    tables=headrace.bundles.Tables("headrace_ingest.migrations"),
    page=headrace.bundles.Page("headrace_ingest.page", title="Documents"),
    demo="headrace_ingest.demo:demo",
)
