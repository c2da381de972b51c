"""The tasks of the workers: good ones, which must complete, and bad ones, which must end.

Every handler writes down when it begins and ends. What it returns names its job, its token and a
number of its own, so that the result of another job, or of an earlier attempt, is told apart.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Any

import headrace
from chaos import bad_tasks
from chaos.journal import Journal, Line

# Deaths and freezes spend attempts; a good job must outlive them all.
MANY = headrace.RetryPolicy(retries=1_000, base=0.05, factor=1.0)

GOOD = frozenset({"plain", "threaded", "isolated", "laned", "staged", "napping", "shaky"})
"""Tasks whose jobs must complete, whatever happens to workers and servers."""

STAGES = ("one", "two", "three")


class Diary:
    """Writes down what one attempt does."""

    def __init__(
        self, journal: Journal, ctx: headrace.Context, number: int, lane: str = ""
    ) -> None:
        self.journal = journal
        self.ctx = ctx
        self.number = number
        self.lane = lane
        self.nonce = secrets.token_hex(6)

    def write(self, event: Any, name: str = "") -> None:
        """One line about this attempt."""
        ctx = self.ctx
        self.journal.write(
            Line(
                event=event,
                job=ctx.job_id,
                token=ctx.token,
                attempt=ctx.attempt,
                task=ctx.task,
                lane=self.lane,
                number=self.number,
                nonce=self.nonce,
                name=name,
            )
        )

    def end(self) -> dict[str, Any]:
        """What the handler returns."""
        self.write("end")
        return {"number": self.number, "token": self.ctx.token, "nonce": self.nonce}


def register(app: headrace.App, journal: Journal) -> headrace.App:
    """Make these the tasks of an App."""

    def begin(ctx: headrace.Context, number: int, lane: str = "") -> Diary:
        diary = Diary(journal, ctx, number, lane)
        diary.write("begin")
        return diary

    @app.task("plain", retry=MANY)
    async def plain(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        await asyncio.sleep(seconds)
        return diary.end()

    @app.task("threaded", retry=MANY)
    def threaded(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        time.sleep(seconds)
        return diary.end()

    @app.task("isolated", retry=MANY, isolate="process")
    def isolated(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        time.sleep(seconds)
        return diary.end()

    @app.task("laned", retry=MANY, lane="{lane}", timeout=None)
    async def laned(
        ctx: headrace.Context, lane: str, number: int, seconds: float = 0.0
    ) -> dict[str, Any]:
        # The lane that was asked for: what the engine made of it is what is judged.
        diary = begin(ctx, number, lane)
        await asyncio.sleep(seconds)
        return diary.end()

    @app.task("staged", retry=MANY)
    async def staged(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        await stages(ctx, diary, seconds)
        return diary.end()

    @app.task("napping", retry=MANY)
    async def napping(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        await stages(ctx, diary, 0.0)
        await ctx.sleep(1.0 + seconds)
        return diary.end()

    @app.task("shaky", retry=MANY)
    async def shaky(ctx: headrace.Context, number: int, seconds: float = 0.0) -> dict[str, Any]:
        diary = begin(ctx, number)
        await asyncio.sleep(seconds)
        if ctx.attempt < 3:
            raise OSError(f"attempt {ctx.attempt} of job {number} fails")
        return diary.end()

    bad_tasks.register(app, begin)
    return app


async def stages(ctx: headrace.Context, diary: Diary, seconds: float) -> None:
    """Three steps, each of which writes down that it was run."""

    async def stage(name: str) -> str:
        diary.write("stage", name)
        await asyncio.sleep(seconds)
        return f"{diary.number} {name}"

    for name in STAGES:
        kept = await ctx.stage(name, stage, name)
        if kept != f"{diary.number} {name}":
            raise headrace.NotRetryable(f"stage {name} of {diary.number} answered {kept!r}")
        diary.write("kept", name)
