"""The program that crash tests run as `headrace worker --app tests.crash.program`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace
import headrace.app_lifecycle as opening_module
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import Migrate, open_engine
from headrace.model.outcome import Completed, Settlement
from headrace.model.views import Exchange
from tests.crash import journal, tasks
from tests.crash.journal import Line
from tests.crash.tasks import reach


def open_watched(url: str, *, clock: Clock | None = None, migrate: Migrate = "auto") -> Engine:
    """An engine that writes down which results it took, with points of death around its trips."""
    engine = open_engine(url, clock=clock, migrate=migrate)
    exchange = engine.exchange

    async def watched(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        results = [each for each in settlements if isinstance(each.outcome, Completed)]
        if claim.get("limit"):
            reach("before the claim")
        if results:
            reach("before settling")
        answer = await exchange(settlements, **claim)
        for result in results:
            event = "refused" if result.job_id in answer.refused else "settled"
            journal.write(Line(event=event, job=result.job_id, token=result.token))
        if answer.jobs:
            reach("after the claim")
        if results:
            reach("after settling")
        return answer

    setattr(engine, "exchange", watched)  # noqa: B010 - a method of this one engine is replaced
    return engine


# Whenever the App opens an engine, now or when it is given other settings, it is a watched one.
setattr(opening_module, "open_engine", open_watched)  # noqa: B010
app = tasks.register(headrace.App())
