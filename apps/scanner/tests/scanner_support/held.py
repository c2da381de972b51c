"""Holds the App of a test: child processes of its worker find it here, by its name."""

from __future__ import annotations

import headrace

app = headrace.App(bundles=["scanner"])
