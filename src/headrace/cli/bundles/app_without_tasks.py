"""An App without tasks of its own, for those who run bundles alone."""

from __future__ import annotations

from headrace.app import App

app = App()
