"""The machine's own Chromium, for tests and for measuring."""

from __future__ import annotations

import shutil

NONE_FOUND = "there is no chromium here; install it with: make programs"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The same Chromium without the windows and services around its pages, which nobody sees in a test:
# the same pages take much less processor time. It has no tabs of which one is in front.
HEADLESS = "chromium-headless-shell"
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


def find_headless() -> str | None:
    """Return the path of the cheapest browser that shows pages as people see them; None if there is
    none.
    """
    return shutil.which(HEADLESS) or find_browser()
