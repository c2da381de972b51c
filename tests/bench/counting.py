"""An engine that counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from headrace.engine.base import LeaseKeeper
from headrace.model.worker import Renewal, WorkerStats

# What does not go to the store.
SILENT = frozenset({"keeper", "open", "close"})


class Counted:
    """Passes every verb on, and counts it by name. Renewals come from a thread, one at a time."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        if not callable(found) or name in SILENT:
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return found(*arguments, **named)

        # Looked up once, so that counting costs next to nothing.
        setattr(self, name, counted)
        return counted

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        return CountedKeeper(self.engine.keeper(worker_id, lease_seconds), self._renewed)

    def _renewed(self) -> None:
        self.calls["renew"] += 1


class CountedKeeper:
    """A lease keeper whose renewals are counted."""

    def __init__(self, keeper: LeaseKeeper, renewed: Callable[[], None]) -> None:
        self._keeper = keeper
        self._renewed = renewed

    def renew(self, stats: WorkerStats) -> Renewal:
        self._renewed()
        return self._keeper.renew(stats)

    def close(self) -> None:
        self._keeper.close()
