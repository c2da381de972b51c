"""The bundle. What it brings is imported where it is used."""

from __future__ import annotations

import headrace
import headrace.bundles
from headrace_scanner.settings import ScannerSettings

bundle = headrace.Bundle(
    "scanner",
    summary="Products: checked on eight platforms, one job at a time on each",
    settings=ScannerSettings,
    register="headrace_scanner.scanning.tasks:register",
    routes="headrace_scanner.routes:routes",
    commands="headrace_scanner.commands:commands",
    tables=headrace.bundles.Tables("headrace_scanner.migrations"),
    page=headrace.bundles.Page("headrace_scanner.page", title="Products"),
    demo="headrace_scanner.demo:demo",
)
