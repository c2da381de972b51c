"""The bundle. What it brings is imported where it is used."""

from __future__ import annotations

import headrace
import headrace.bundles
from headrace_spots.settings import SpotsSettings

bundle = headrace.Bundle(
    "spots",
    summary="Shops: analysed from their public pages",
    settings=SpotsSettings,
    register="headrace_spots.pipeline:register",
    routes="headrace_spots.routes:routes",
    commands="headrace_spots.commands:commands",
    tables=headrace.bundles.Tables("headrace_spots.migrations"),
    page=headrace.bundles.Page("headrace_spots.page", title="Shops"),
    demo="headrace_spots.demo:demo",
)
