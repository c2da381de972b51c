"""`headrace jobs cancel`, `retry` and `signal`: by id, or many at once by filter."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.api_types.bulk import BulkAction, BulkAnswer
from headrace.app import App
from headrace.cli.backend import time_now
from headrace.cli.command import Command, argument, flag, option, together
from headrace.cli.confirm import YES, change_each, confirm
from headrace.cli.filters import check_fingerprint, filter_options, make_filter
from headrace.cli.formatting import plural
from headrace.cli.ids import whole_id
from headrace.cli.output import progress
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput, JobConflict, JobNotFound
from headrace.model.job import Job, JobFilter

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

JOB = argument("job_id", "ID", "The id, or its beginning, from `jobs list`.")
_which = together(
    argument("ids", "[ID]...", "Ids of jobs, or their beginnings.", nargs=-1),
    filter_options,
    flag("everything --all", "Every job that this command applies to."),
)
_how = together(
    flag("--dry-run", "Only count the jobs that match, by task and error."),
    flag("--background", "Let a server do it; see `headrace bulk`."),
    YES,
)


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
        job_id = await whole_id(backend, job_id)
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
    action: BulkAction,
    verb: Callable[[str], Awaitable[Job]],
    options: dict[str, Any],
    *,
    ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    background: bool,
    yes: bool,
    **flags: Any,
) -> int:
    """Change the jobs that are given by id, or else all that match the filter."""
    flags = {name: value for name, value in flags.items() if value}
    if not ids:
        if not flags and not everything:
            raise InvalidInput("which jobs? give ids, a filter such as --queue or --task, or --all")
        options["fingerprint"] = check_fingerprint(flags.pop("fingerprint", None))
        if flags.get("parent"):
            flags["parent"] = await whole_id(backend, flags["parent"])
        wanted = make_filter(time_now(backend), **flags)
        counted = await backend.bulk(
            action, wanted, dry_run=True, fingerprint=options["fingerprint"]
        )
        if dry_run:
            _show_preview(session, action, counted)
            return 0
        if counted.matched and not yes:
            confirm(action, counted.matched, "job", hint=", or --dry-run to only count")
        # Only what was counted: jobs that were made since are left alone.
        options["cutoff"] = counted.cutoff
        if background:
            await _start(session, backend, action, wanted, options)
        else:
            await _bulk(session, backend, action, wanted, options, counted=counted)
        return 0
    if background:
        raise InvalidInput("--background is for a filter, not for ids")
    if flags or everything:
        raise InvalidInput("give ids or a filter, not both")

    async def change(job_id: str) -> tuple[dict[str, Any], str]:
        job = await verb(job_id)
        done = "cancelled" if action == "cancel" else "will run again"
        asked = job.cancel_requested and not job.status.final
        return {"status": job.status}, "asked to stop" if asked else done

    # All are checked first: a bad id among them changes nothing.
    checked = await _checked(backend, ids)
    refusals = (JobNotFound, JobConflict)
    return await change_each(
        session, checked, change, refusals=refusals, name="jobs", key="job_id", named=True
    )


async def _checked(backend: Backend, ids: Sequence[str]) -> list[str]:
    """Return whole ids. One of which nothing begins stays as it is, to be refused in its turn."""
    checked = []
    for text in ids:
        try:
            checked.append(await whole_id(backend, text))
        except JobNotFound:
            checked.append(text)
    return checked


async def _bulk(
    session: CliSession,
    backend: Backend,
    action: BulkAction,
    wanted: JobFilter,
    options: dict[str, Any],
    *,
    counted: BulkAnswer,
) -> None:
    """Change all jobs that match, which were counted and confirmed before."""
    matching = counted.matched
    with progress(action.capitalize(), matching, quiet=session.json) as advance:
        if isinstance(backend, App):
            options["on_progress"] = lambda seen: advance(min(seen, matching))
        answer = await backend.bulk(action, wanted, **options)
    done = "Cancelled, or asked to stop" if action == "cancel" else "To run again"
    text = f"{done}: {plural(answer.changed, 'job')} of {answer.matched:,} that matched."
    counts = {"verb": action, "matching": answer.matched, "changed": answer.changed}
    session.show(counts | {"dry_run": False}, text)


async def _start(
    session: CliSession,
    backend: Backend,
    action: BulkAction,
    wanted: JobFilter,
    options: dict[str, Any],
) -> None:
    if isinstance(backend, App):
        options["who"] = "cli"
    made = await backend.start_bulk(action, wanted, **options)
    session.show(made, f"{made.id}  a server does it; see: headrace bulk show {made.id}")


def _show_preview(session: CliSession, action: BulkAction, counted: BulkAnswer) -> None:
    least = "" if counted.complete else "at least "
    lines = [f"Would {action} {least}{plural(counted.matched, 'job')}."]
    if len(counted.by_task) > 1:
        lines += [f"  {count:>6,}  task {name}" for name, count in counted.by_task.items()]
    lines += [
        f"  {each.count:>6,}  {each.error_type}  {each.fingerprint or ''}".rstrip()
        for each in counted.by_error
    ]
    counts = {"verb": action, "matching": counted.matched, "changed": 0, "dry_run": True}
    names = ("complete", "cutoff", "by_task", "by_queue", "by_error")
    session.show(counts | {name: getattr(counted, name) for name in names}, *lines)
