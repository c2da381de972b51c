"""Tasks that write down when they begin and end, and that die where they are told to."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace
from tests.crash import journal
from tests.crash.journal import Line

DIE = "HEADRACE_TEST_DIE"
"""Names the point where a process kills itself."""

HOLD = "HEADRACE_TEST_HOLD"
"""Names the point where a process waits, once, until the file in HOLD_UNTIL exists."""

HOLD_UNTIL = "HEADRACE_TEST_HOLD_UNTIL"


def reach(point: str) -> None:
    """Die or wait here, if that is what this process was started for."""
    if os.environ.get(DIE) == point:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get(HOLD) == point:
        del os.environ[HOLD]
        journal.write(Line(event="held"))
        # Nothing else on this thread may go on either.
        while not Path(os.environ[HOLD_UNTIL]).exists():
            time.sleep(0.005)


def tell(ctx: headrace.Context | headrace.ChunkJob[Any], event: str, stage: str = "") -> None:
    journal.write(
        Line(
            event=event,
            job=ctx.job_id,
            token=ctx.token,
            attempt=ctx.attempt,
            lane=ctx.lane,
            stage=stage,
        )
    )


async def work(ctx: headrace.Context, seconds: float = 0.0) -> int:
    """Take a while and answer the token."""
    tell(ctx, "start")
    reach("in the handler")
    await asyncio.sleep(seconds)
    tell(ctx, "end")
    return ctx.token


async def in_lane(ctx: headrace.Context, lane: str, seconds: float = 0.0) -> int:
    """The same, in a lane."""
    return await work(ctx, seconds)


async def gated(ctx: headrace.Context, gate: str) -> int:
    """Run until the file `gate` with this attempt's token at its end exists."""
    tell(ctx, "start")
    while not Path(f"{gate}{ctx.token}").exists():  # noqa: ASYNC110, ASYNC240 - seen by others
        await asyncio.sleep(0.01)
    tell(ctx, "end")
    return ctx.token


async def deadly(ctx: headrace.Context) -> None:
    """Kill the worker that runs it."""
    tell(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


async def staged(ctx: headrace.Context) -> list[str]:
    """Three stages, each of which writes down that it was run."""

    async def stage(name: str) -> str:
        tell(ctx, "stage", name)
        reach(f"in stage {name}")
        tell(ctx, "staged", name)
        return name

    done = []
    for name in ("one", "two", "three"):
        done.append(await ctx.stage(name, stage, name))
        reach(f"after stage {name}")
    return done


@dataclass
class Piece:
    """What a job of a chunk works on."""

    number: int


async def chunked(chunk: headrace.Chunk[Piece]) -> list[int]:
    """Complete one half, wait until that is recorded, and answer the tokens of the rest."""
    for job in chunk:
        tell(job, "start")
    reach("at the start of a chunk")
    for job in chunk[: len(chunk) // 2]:
        tell(job, "end")
        job.complete(job.token)
    await asyncio.sleep(0.3)
    reach("in the middle of a chunk")
    for job in chunk[len(chunk) // 2 :]:
        tell(job, "end")
    return [job.token for job in chunk]


def counted_by(app: headrace.App) -> Callable[..., Awaitable[None]]:
    """A handler that writes down when the engine has counted its start, by the engine's clock."""

    async def counted(ctx: headrace.Context, key: str) -> None:
        [job] = await app.engine.get([ctx.job_id])
        # A worker that was frozen may begin when its attempt is lost.
        if job.token == ctx.token and job.started_at is not None:
            at = job.started_at.timestamp()
            journal.write(Line(event="counted", job=job.id, token=job.token, lane=job.lane, at=at))

    return counted


def register(app: headrace.App) -> headrace.App:
    """Make these the tasks of an App."""
    many = headrace.RetryPolicy(retries=100, base=0.0)
    app.task("work", retry=many)(work)
    app.task("in_lane", retry=many, lane="{lane}")(in_lane)
    app.task("gated", retry=many)(gated)
    app.task("fragile", on_crash="fail")(gated)
    app.task("deadly", retries=2)(deadly)
    app.task("staged", retry=many)(staged)
    app.task("counted", retry=many, lane="{key}")(counted_by(app))
    if hasattr(headrace, "Chunk"):  # programs of an earlier version have these tasks, too
        app.task("chunked", retry=many, chunk=10, chunk_wait=0.5)(chunked)
    return app
