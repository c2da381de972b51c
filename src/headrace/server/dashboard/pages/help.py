"""The keys, and what the signs mean."""

from __future__ import annotations

from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit


@page("/help", title="Help")
async def help_page(_: Visit) -> Shown:
    """Nothing on it changes."""
    return Shown("frame/help.html")
