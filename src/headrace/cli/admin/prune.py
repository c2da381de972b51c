"""`headrace prune`: delete old finished jobs."""

from __future__ import annotations

from datetime import timedelta

import click

from headrace.app import App
from headrace.cli.command import Command, flag, option
from headrace.cli.errors import notice
from headrace.cli.formatting import parse_span, plural, span
from headrace.cli.output import print_json, print_line, progress
from headrace.cli.session import CliSession
from headrace.config import MOST_SECONDS
from headrace.errors import EngineError, InvalidInput
from headrace.model.job import JobFilter
from headrace.model.status import FINAL
from headrace.upkeep import Files

STEP = 1_000


@click.command("prune", cls=Command)
@option("--older-than", "SPAN", "Only jobs that finished longer ago: 12h, 7d, …")
@option("--keep", "N", "Keep the newest N finished jobs.", type=int)
@flag("--dry-run", "Only count; delete nothing.")
async def prune(
    session: CliSession, *, older_than: str | None, keep: int | None, dry_run: bool
) -> None:
    """Delete old finished jobs.

    Oldest first, in small steps beside the running workers. Their files are deleted too.

    Without options the settings history_seconds and history_count decide, as workers do it.

      headrace prune --older-than 30d
      headrace prune --keep 100000 --dry-run
    """
    if keep is not None and keep < 0:
        raise InvalidInput(f"--keep must be 0 or more, got {keep}")
    if session.remote:
        raise InvalidInput(
            "prune works on an engine, and workers do it by themselves; name the engine with "
            "--url, or unset API_URL"
        )
    async with session.store() as app:
        if older_than is None and keep is None:
            age: float | None = app.settings.history_seconds
            keep = app.settings.history_count
        else:
            age = None if older_than is None else _age(older_than)
        count = removed = 0
        trouble: EngineError | None = None
        if dry_run:
            count = await _count(app, age, keep)
        else:
            with progress("Prune", quiet=session.json) as advance:
                while step := await app.engine.prune(older_than=age, keep=keep, limit=STEP):
                    count += step
                    advance(count)
            files = Files(engine=app.engine, artifacts=app.artifact_store, clock=app.clock)
            try:
                removed = await files.remove_pruned()
                trouble = next(iter(files.refused.values()), None)
            except EngineError as error:
                trouble = error
    if trouble is not None:
        notice(
            f"note: files of pruned jobs are left, workers go on trying to remove them: {trouble}"
        )
    if session.json:
        given = {"older_than": age, "keep": keep, "dry_run": dry_run}
        print_json({"pruned": count, "files_removed_of": removed, **given})
    else:
        which = [] if age is None else [f"finished more than {span(age)} ago"]
        which += [] if keep is None else [f"beyond the newest {keep:,}"]
        verb = "Would delete" if dry_run else "Deleted"
        print_line(f"{verb} {plural(count, 'job')} ({' or '.join(which)}).")
        if removed:
            print_line(f"Removed the files of {plural(removed, 'pruned job')}.")


def _age(text: str) -> float:
    age = parse_span("--older-than", text)
    if age > MOST_SECONDS:
        raise InvalidInput(f"--older-than {text!r} is more than 100 years; use a shorter span")
    return age


async def _count(app: App, age: float | None, keep: int | None) -> int:
    """Both rules delete from the old end, so together they delete as many as the wider one."""
    cutoff = None if age is None else app.clock.utcnow() - timedelta(seconds=age)
    finished = old = 0
    cursor = None
    while True:
        page = await app.list(JobFilter(statuses=tuple(FINAL)), cursor=cursor, limit=STEP)
        finished += len(page.jobs)
        old += sum(
            cutoff is not None and job.completed_at is not None and job.completed_at < cutoff
            for job in page.jobs
        )
        cursor = page.cursor
        if cursor is None:
            return max(old, 0 if keep is None else finished - keep)
