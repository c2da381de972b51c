"""Handlers that misbehave in ways that a worker has to survive. Their jobs have to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import headrace

FEW = headrace.RetryPolicy(retries=1, base=0.1, factor=1.0)

RAISED: dict[str, type[BaseException]] = {
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "BaseException": BaseException,
    "MemoryError": MemoryError,
    "StopAsyncIteration": StopAsyncIteration,
    "RecursionError": RecursionError,
}


def register(app: headrace.App, begin: Callable[..., Any]) -> None:
    """Make these tasks of an App."""

    @app.task("raises", retry=FEW)
    async def raises(ctx: headrace.Context, number: int, what: str) -> None:
        begin(ctx, number)
        raise RAISED[what]

    @app.task("raises_in_thread", retry=FEW)
    def raises_in_thread(ctx: headrace.Context, number: int, what: str) -> None:
        begin(ctx, number)
        raise RAISED[what]

    @app.task("blocks", retry=FEW)
    async def blocks(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        time.sleep(seconds)  # noqa: ASYNC251 - this is what it is for
        return diary.end()

    @app.task("hangs", retry=FEW, timeout=1.0)
    async def hangs(ctx: headrace.Context, number: int, seconds: float) -> None:
        begin(ctx, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # It does not want to be cancelled.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    @app.task("hangs_in_thread", retry=FEW, timeout=1.0)
    def hangs_in_thread(ctx: headrace.Context, number: int, seconds: float) -> None:
        begin(ctx, number)
        time.sleep(seconds)

    @app.task("hangs_isolated", retry=FEW, timeout=1.0, isolate="process")
    def hangs_isolated(ctx: headrace.Context, number: int, seconds: float) -> None:
        begin(ctx, number)
        time.sleep(seconds)

    @app.task("forks", retry=FEW, isolate="process", timeout=10.0)
    def forks(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        if os.fork() == 0:
            # A child whose `exec` fails, and which then goes on as if it were the handler.
            os.execv("/nonexistent/program", ["program"])
        return diary.end()

    @app.task("starts_programs", retry=FEW, isolate="process", timeout=10.0)
    def starts_programs(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        subprocess.Popen(["sleep", str(seconds)])
        return diary.end()

    @app.task("runs_program", retry=FEW, isolate="process", timeout=6.0)
    def runs_program(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        subprocess.run(["sleep", str(seconds)], check=False)
        return diary.end()

    @app.task("leaves_thread", retry=FEW, isolate="process", timeout=10.0)
    def leaves_thread(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        threading.Thread(target=print, args=("left behind",)).start()
        return diary.end()

    @app.task("poison", retry=FEW)
    async def poison(ctx: headrace.Context, number: int) -> None:
        begin(ctx, number)
        os.kill(os.getpid(), signal.SIGKILL)

    @app.task("poison_isolated", retry=FEW, isolate="process")
    def poison_isolated(ctx: headrace.Context, number: int) -> None:
        begin(ctx, number)
        os.kill(os.getpid(), signal.SIGKILL)

    @app.task("descriptors", retry=FEW)
    async def descriptors(ctx: headrace.Context, number: int, seconds: float) -> Any:
        diary = begin(ctx, number)
        with no_descriptors():
            await asyncio.sleep(seconds)
        return diary.end()

    @app.task("big", retry=FEW)
    async def big(ctx: headrace.Context, number: int) -> str:
        begin(ctx, number)
        return "x" * 3_000_000


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """Nobody in this process can open a file or a connection meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Few, so that it takes no time to use them up.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
