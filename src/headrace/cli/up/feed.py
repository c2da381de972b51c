"""Prints what happens to jobs, line by line, while it happens."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace.app import App
from headrace.cli.columns import hanging
from headrace.cli.formatting import ago, clean, clock, failure, retry_time, took
from headrace.cli.output import COLOURS, is_terminal, print_json_line, print_line
from headrace.errors import EngineUnavailable
from headrace.model.job import Job
from headrace.model.sealed import shown_document
from headrace.model.status import Status
from headrace.monitor.why import waits_for
from headrace.publishing.tasks import PUBLISH

NEWEST = 100
LINES = 20
# So much of an id is shown to people: it tells most jobs apart, and commands take it.
ID_SHOWN = 18


class JobFeed:
    """Polls the newest jobs and prints what has changed."""

    def __init__(self, app: App, *, json: bool = False) -> None:
        self._app = app
        self._json = json
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._labels: Mapping[str, str] = {}
        self._begun = False

    async def begin(self, labels: Mapping[str, str] | None = None) -> None:
        """Remember what is there, except jobs with a label: only changes are printed."""
        self._labels = labels or {}
        for job in (await self._app.list(limit=NEWEST)).jobs:
            if job.id not in self._labels:
                self._seen[job.id] = _compared(job)
        self._begun = True

    async def print_changes(self) -> None:
        """Print what has changed since the last call."""
        jobs = (await self._app.list(limit=NEWEST)).jobs
        changed = [job for job in reversed(jobs) if self._seen.get(job.id) != _compared(job)]
        for job in changed[:LINES]:
            self._print(job)
        if len(changed) > LINES and not self._json:
            print_line(f"          … and {len(changed) - LINES} more; see: headrace jobs list")
        self._seen = {job.id: _compared(job) for job in jobs}

    async def end(self) -> None:
        """Print what has changed since the last call, if `begin` was called."""
        if self._begun:
            with contextlib.suppress(EngineUnavailable):
                await self.print_changes()

    def _print(self, job: Job) -> None:
        if self._json:
            print_json_line({"event": "job", "job": job.to_dict()})
            return
        now = self._app.clock.utcnow()
        label = self._labels.get(job.id)
        if label is not None and job.status is Status.PENDING:
            return  # the tour has listed them already
        if job.task == PUBLISH and not job.error:
            return  # what publishes an event says nothing that the job before it has not said
        shown = job.id[:ID_SHOWN] if is_terminal() else job.id
        start = f"{clock(now)}  {label or f'{shown} {job.task}':<9}  "
        if is_terminal():
            _coloured(start, sentence(job, now), COLOURS.get(job.status.value, "default"))
        else:
            print_line(start + sentence(job, now))


def sentence(job: Job, now: datetime) -> str:
    """Return what happened to a job."""
    match job.status:
        case Status.RUNNING:
            return f"{job.stage} ({job.progress:.0f}%)" if job.stage else "started"
        case Status.SCHEDULED:
            return _scheduled(job, now)
        case Status.PENDING:
            place = f", lane {job.lane}" if job.lane else ""
            return f"waits in queue {job.queue}{place}"
        case Status.COMPLETED:
            attempt = f" on attempt {job.attempt}" if job.attempt > 1 else ""
            result = shown_document(job.result_json or b"null").decode()
            shown = "" if result == "null" else f" → {result if len(result) < 60 else '…'}"
            return f"completed{attempt} in {took(job.started_at, job.completed_at)}{shown}"
        case _:
            return f"{job.status}: {failure(job)}"


def _scheduled(job: Job, now: datetime) -> str:
    if job.awaits:
        return f"waits for {waits_for(job.awaits)}"
    if job.attempt:
        return f"attempt {job.attempt} failed, {retry_time(job, now)}: {failure(job)}"
    return f"is due {ago(job.run_at, now)}"


def _compared(job: Job) -> tuple[Any, ...]:
    """Return what has to differ to be worth a line; progress alone would print too many."""
    return (job.status, job.attempt, job.stage)


def _coloured(start: str, text: str, colour: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - only when it draws
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    whole = hanging(clean(start) + clean(text), console.width)
    line = Text.assemble((whole[: len(start)], "dim"), (whole[len(start) :], colour))
    console.print(line, soft_wrap=True)
