"""What a process says about itself."""

from __future__ import annotations

from typing import Protocol

STARTING = "it starts: it has not registered with the engine yet"
STOPPING = "it stops"


class Probe(Protocol):
    """One process."""

    async def trouble(self) -> str | None:
        """Return why it cannot work now, in words without addresses or data of jobs; None if it
        can.
        """

    async def metrics(self) -> bytes:
        """Return its metrics in the text format of Prometheus."""
