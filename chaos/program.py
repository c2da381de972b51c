"""The program that workers run: `headrace worker --app chaos.program`.

The engine's answers to outcomes are written down, and the clocks of this process can be set from
outside, through a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import headrace
import headrace.app_lifecycle as opening_module
from chaos import tasks
from chaos.clocks import CLOCK, follow
from chaos.journal import Journal, Line, from_environment
from chaos.told_on_signal import tell_on_signal
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import Migrate, open_engine
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange


def watched(engine: Engine, journal: Journal) -> Engine:
    """An engine that writes down which outcomes it took and which it refused."""
    exchange = engine.exchange

    async def exchange_and_tell(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        answer = await exchange(settlements, **claim)
        refused = set(answer.refused)
        for each in settlements:
            journal.write(
                Line(
                    event="refused" if each.job_id in refused else "settled",
                    job=each.job_id,
                    token=each.token,
                    name=type(each.outcome).__name__,
                )
            )
        return answer

    setattr(engine, "exchange", exchange_and_tell)  # noqa: B010 - a method of this one engine
    return engine


def make_app() -> headrace.App:
    """The App of a worker, or of a child process of one."""
    journal = from_environment()

    def open_watched(url: str, *, clock: Clock | None = None, migrate: Migrate = "auto") -> Engine:
        return watched(open_engine(url, clock=clock, migrate=migrate), journal)

    # Whenever the App opens an engine, now or with other settings, it is a watched one.
    setattr(opening_module, "open_engine", open_watched)  # noqa: B010
    tell_on_signal()
    app = tasks.register(headrace.App(), journal)
    if path := os.environ.get(CLOCK):
        follow(Path(path), app.clock)
    return app


app = make_app()
