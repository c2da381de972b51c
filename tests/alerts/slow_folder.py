"""The adapter of the dispatcher in a scene, whose folder has more than it takes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from headrace.dispatchers.events.adapter import Message
from tests.alerts.shared import OPEN
from tests.support.example_adapter import load

FOLDER = Path(os.environ["ALERT_SCENE"])


class SlowFolder(load()):  # type: ignore[misc]
    """Takes one batch, and the others when the test lets it."""

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """Return batches."""
        async for batch in super().receive():
            yield batch
            while not (FOLDER / OPEN).exists():  # noqa: ASYNC110 - another process says so
                await asyncio.sleep(0.05)
