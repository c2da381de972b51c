"""The part of an App that is watched."""

from __future__ import annotations

from typing import Protocol

from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine


class WatchedApp(Protocol):
    """An App. `open` connects, if that has not been done."""

    settings: Settings
    clock: Clock

    async def open(self) -> None: ...

    @property
    def engine(self) -> Engine: ...
