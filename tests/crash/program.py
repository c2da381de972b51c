"""The program that crash tests run as `headrace worker --app tests.crash.program`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace
from headrace.engine.base import Engine
from headrace.model.outcome import Completed, Settlement
from headrace.model.views import Exchange
from tests.crash import journal, tasks
from tests.crash.journal import Line
from tests.crash.tasks import reach


def watch(engine: Engine) -> None:
    """Write down which results the engine took, and put the points of death around its trips."""
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


app = tasks.register(headrace.App())
watch(app.engine)
