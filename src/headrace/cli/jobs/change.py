"""`headrace jobs cancel`, `retry` and `signal`: by id, or many at once by filter."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from headrace.app import App
from headrace.cli.backend import time_now
from headrace.cli.bulk import YES, change_each, confirm
from headrace.cli.command import Command, argument, flag, option, together
from headrace.cli.filters import filter_options, make_filter
from headrace.cli.formatting import plural
from headrace.cli.output import progress
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput, JobConflict, JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

JOB = argument("job_id", "ID", "The whole id, from `jobs list`.")
_which = together(
    argument("ids", "[ID]...", "Ids of jobs.", nargs=-1),
    filter_options,
    flag("everything --all", "Every job that this command applies to."),
)
_how = together(flag("--dry-run", "Only count the jobs that match."), YES)


@click.command("cancel", cls=Command)
@_which
@option("--reason", "TEXT", "Stored with the job.", default="cancelled from the CLI")
@_how
async def cancel(session: CliSession, *, reason: str, **which: Any) -> int:
    """Cancel jobs by id, or all unfinished ones that match a filter.

    A running job is asked to stop at once.

      headrace jobs cancel 01980000-0000-7000-8000-000000000000
      headrace jobs cancel --queue mail --status pending --dry-run
    """
    async with session.backend() as backend:
        stop = functools.partial(backend.cancel, reason=reason)
        return await _change(session, backend, "cancel", stop, {"reason": reason}, **which)


@click.command("retry", cls=Command)
@_which
@option("from_stage --from", "STAGE", "Repeat this stage and those after it.")
@_how
async def retry(session: CliSession, *, from_stage: str | None, **which: Any) -> int:
    """Run jobs again: by id, or all failed and timed-out ones that match a filter.

    Finished stages are not run again, unless --from says so. A scheduled job given by id runs now.

      headrace jobs retry 01980000-0000-7000-8000-000000000000
      headrace jobs retry 01980000-0000-7000-8000-000000000000 --from parsing
      headrace jobs retry --task invoice.send --since 2h --yes
    """
    if from_stage is not None and not which["ids"]:
        raise InvalidInput("--from is for jobs that are given by id")
    async with session.backend() as backend:
        again = functools.partial(backend.retry, from_stage=from_stage)
        return await _change(session, backend, "retry", again, {}, **which)


@click.command("signal", cls=Command)
@JOB
@argument("event", "EVENT", "The name of the event.")
@argument("value", "[JSON]", "What ctx.wait returns (default null).", default=None)
async def signal(session: CliSession, *, job_id: str, event: str, value: str | None) -> None:
    """Deliver an event to a job that waits for it, or will (`ctx.wait`).

    The first event of a name counts.

      headrace jobs signal 01980000-0000-7000-8000-000000000000 approved true
    """
    try:
        decoded = None if value is None else msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"the value {value!r} is not JSON: {error}; write text as '\"text\"'"
        ) from None
    async with session.backend() as backend:
        delivery = await backend.signal(job_id, event, decoded)
    told = (
        f"event {event!r} delivered"
        if delivery == "delivered"
        else f"had event {event!r} already; the first one counts"
    )
    session.show({"job_id": job_id, "event": event, "delivery": delivery}, f"{job_id}  {told}")


async def _change(
    session: CliSession,
    backend: Backend,
    action: Literal["cancel", "retry"],
    verb: Callable[[str], Awaitable[Job]],
    options: dict[str, Any],
    *,
    ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
    **flags: Any,
) -> int:
    """Change the jobs that are given by id, or else all that match the filter."""
    flags = {name: value for name, value in flags.items() if value}
    if not ids:
        if not flags and not everything:
            raise InvalidInput("which jobs? give ids, a filter such as --queue or --task, or --all")
        wanted = make_filter(time_now(backend), **flags)
        await _bulk(session, backend, action, wanted, options, dry_run=dry_run, yes=yes)
        return 0
    if flags or everything:
        raise InvalidInput("give ids or a filter, not both")

    async def change(job_id: str) -> tuple[dict[str, Any], str]:
        job = await verb(job_id)
        done = "cancelled" if action == "cancel" else "will run again"
        asked = job.cancel_requested and not job.status.final
        return {"status": job.status}, "asked to stop" if asked else done

    # All are checked first: a bad id among them changes nothing.
    checked = [parse_id(text) for text in ids]
    refusals = (JobNotFound, JobConflict)
    return await change_each(
        session, checked, change, refusals=refusals, name="jobs", key="job_id", named=True
    )


async def _bulk(
    session: CliSession,
    backend: Backend,
    action: Literal["cancel", "retry"],
    wanted: JobFilter,
    options: dict[str, Any],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Change all jobs that match, which are counted and confirmed before."""
    matching = (await backend.bulk(action, wanted, dry_run=True)).matched
    changed = 0
    text = f"Would {action} {plural(matching, 'job')}."
    if not dry_run:
        if matching and not yes:
            confirm(action, matching, "job", hint=", or --dry-run to only count")
        with progress(action.capitalize(), matching, quiet=session.json) as advance:
            if isinstance(backend, App):
                options["on_progress"] = lambda seen: advance(min(seen, matching))
            changed = (await backend.bulk(action, wanted, **options)).changed
        done = "Cancelled, or asked to stop" if action == "cancel" else "To run again"
        text = f"{done}: {plural(changed, 'job')} of {matching:,} that matched."
    counts = {"verb": action, "matching": matching, "changed": changed, "dry_run": dry_run}
    session.show(counts, text)
