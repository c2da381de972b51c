"""`headrace bench`: how fast your own engine is, measured beside your jobs and not on them."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import msgspec

from headrace.cli.bench.steps import CALLERS, LEAST, Measured, measure
from headrace.cli.bench.store import scratch
from headrace.cli.command import Command
from headrace.cli.errors import notice
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.config import Settings
from headrace.engine.open import redacted
from headrace.errors import InvalidInput
from headrace.loops.signals import on_stop_signals

MOST = 1_000_000


@click.command("bench", cls=Command)
@click.option(
    "--jobs", metavar="N", type=int, default=10000, help="Jobs for each step, 100 to 1000000."
)
async def bench(session: CliSession, *, jobs: int) -> int:
    """Measure how fast your engine stores and runs jobs.

    It uses a separate store next to yours (a file, a schema or a namespace whose name begins with
    headrace_bench), which is removed afterwards. Your jobs are not touched, but the database server
    is busy meanwhile, two minutes at most.

    The jobs do nothing, and the worker runs in this process with as many slots as yours have.

    \b
    Examples:
      headrace bench
      headrace bench --url postgresql://app@db/app --jobs 50000 --json
    """
    if not LEAST <= jobs <= MOST:
        raise InvalidInput(f"--jobs must be between {LEAST} and {MOST:,}, got {jobs}")
    settings = session.settings
    if settings.app is not None and session.url is None:
        settings = session.load_app().settings
    if session.remote:
        notice(f"note: this measures the engine itself: {redacted(settings.url)}")
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a command runs in a task
    # A signal must not leave our store behind. Also Ctrl-C is handled here: a program that was
    # started in the background does not get it otherwise.
    with on_stop_signals(lambda _: task.cancel()) as received:
        try:
            async with scratch(settings.url) as store:
                alike = msgspec.structs.replace(
                    settings, url=store.url, app=None, queues=(), worker_name=None
                )
                version, measured = await measure(alike, store, jobs, quiet=session.json)
        except asyncio.CancelledError:
            if received:
                return 128 + received[0]
            raise
    _answer(session, settings, version, measured, jobs)
    return 0


def _answer(
    session: CliSession, settings: Settings, version: str, measured: Measured, jobs: int
) -> None:
    if session.json:
        found: dict[str, Any] = msgspec.to_builtins(measured)
        shown = {"engine": version, "url": redacted(settings.url), "jobs": jobs}
        print_json({**shown, "slots": settings.max_workers, **found})
        return
    print_line(f"{version} at {redacted(settings.url)}")
    print_line()
    rate, span = _rate, _milliseconds
    print_table(
        ("MEASURED", "RESULT"),
        [
            ("enqueue, one after the other", rate(measured.enqueue_one)),
            (f"enqueue, {CALLERS} callers at once", rate(measured.enqueue_hundred)),
            ("enqueue, many in one call", rate(measured.enqueue_many)),
            (f"run jobs that do nothing, {settings.max_workers} slots", rate(measured.drain)),
            ("idle worker, enqueue to first line, half", span(measured.latency_p50)),
            ("idle worker, enqueue to first line, 99 of 100", span(measured.latency_p99)),
        ],
        right=("RESULT",),
    )
    print_line()
    print_line(
        f"With {plural(measured.stored, 'job')} in a store of its own, which is removed again."
    )


def _rate(value: float | None) -> str:
    return "too slow to tell" if value is None else f"{value:,.0f} jobs/s"


def _milliseconds(value: float | None) -> str:
    return "too slow to tell" if value is None else f"{value:.1f} ms"
