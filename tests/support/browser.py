"""The machine's own Chromium, for tests and for measuring."""

from __future__ import annotations

import shutil

NONE_FOUND = "there is no chromium here; install it with: make programs"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str | None:
    """Return the path of a browser; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)
