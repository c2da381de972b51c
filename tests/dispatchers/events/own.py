"""The adapter that the documentation shows: users write such ones, so it has to pass as well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from headrace.dispatchers.events.adapter import QueueAdapter
from tests.dispatchers.events.harness import Topic
from tests.support.example_adapter import load


class OwnTopic(Topic):
    """A folder."""

    @property
    def options(self) -> dict[str, Any]:
        return {"folder": self.url, "forget_after_seconds": 1.0}

    def adapter(self, **options: Any) -> QueueAdapter:
        made: QueueAdapter = load()(**self.options | options)
        return made

    async def open(self) -> None:
        self.folder = Path(self.url)
        self.folder.mkdir()

    async def send(self, bodies: Sequence[bytes]) -> None:
        for number, body in enumerate(bodies):
            path = self.folder / f"{number:06}-{uuid4().hex}.part"
            path.write_bytes(body)
            path.rename(path.with_suffix(".json"))

    async def close(self) -> None:
        """The folder goes with the test."""
