"""Cancels jobs that have not started in time, also where no worker is there."""

from __future__ import annotations

from headrace.app import App
from headrace.loops.loop import Loop
from headrace.upkeep import end_expired


class ServerExpiry(Loop):
    """What workers do as well; whoever comes first."""

    name = "expired"

    def __init__(self, app: App) -> None:
        super().__init__()
        self._app = app

    async def tick(self) -> float:
        """Cancel what has expired, then rest until the next does, or some seconds at most."""
        await self._app.open()
        return await end_expired(self._app.engine)
