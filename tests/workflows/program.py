"""The program of the crash tests of workflows: `headrace worker --app tests.workflows.program`."""

from __future__ import annotations

import asyncio
from typing import Any

import headrace
from headrace import Context
from tests.crash import journal
from tests.crash.journal import Line


def register(app: headrace.App) -> headrace.App:
    """Tasks that write down when they begin and end."""

    @app.task(retries=50)
    async def step(
        ctx: Context, name: str, value: int = 0, seconds: float = 0.05
    ) -> dict[str, Any]:
        journal.write(Line(event="start", job=ctx.job_id, token=ctx.token, stage=name))
        await asyncio.sleep(seconds)
        journal.write(Line(event="end", job=ctx.job_id, token=ctx.token, stage=name))
        return {"name": name, "value": value + 1, "items": list(range(100))}

    @app.task(retries=50)
    async def total(ctx: Context, outputs: list[dict[str, Any]]) -> int:
        journal.write(Line(event="start", job=ctx.job_id, token=ctx.token, stage="total"))
        return sum(each["value"] for each in outputs)

    return app


app = register(headrace.App())
