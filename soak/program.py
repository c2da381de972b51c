"""The App of all processes of a run: `headrace worker --app soak.program`, and so on.

Jobs that end and jobs that are pruned are counted where the engine answers for them. The engine's
clock can be moved from outside, through a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos.clocks import CLOCK, follow

import headrace
import headrace.app_lifecycle as opening_module
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.model.outcome import Cancelled, Completed, Failed, Settlement, TimedOut
from headrace.model.views import Exchange
from soak import tasks
from soak.pulse import Counts, beat

FINAL = (Completed, Failed, TimedOut, Cancelled)

counts = Counts()


def counted(engine: Engine) -> Engine:
    """An engine that counts the jobs that end and those that are pruned."""
    exchange, prune = engine.exchange, engine.prune

    async def exchange_and_count(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        answer = await exchange(settlements, **claim)
        refused = set(answer.refused)
        counts.ended += sum(
            isinstance(each.outcome, FINAL) and each.job_id not in refused for each in settlements
        )
        return answer

    async def prune_and_count(**asked: Any) -> int:
        removed = await prune(**asked)
        counts.pruned += removed
        return removed

    # Methods of this one engine.
    setattr(engine, "exchange", exchange_and_count)  # noqa: B010
    setattr(engine, "prune", prune_and_count)  # noqa: B010
    return engine


def make_app() -> headrace.App:
    """The App of a process, or of a child process of a worker."""

    def open_counted(url: str, **options: Any) -> Engine:
        return counted(open_engine(url, **options))

    # Whenever the App opens an engine, now or with other settings, its jobs are counted.
    setattr(opening_module, "open_engine", open_counted)  # noqa: B010
    beat(counts)
    app = tasks.register(headrace.App())
    if path := os.environ.get(CLOCK):
        follow(Path(path), app.clock)
    return app


app = make_app()
