"""`headrace jobs cancel` and `retry`: by id, or many at once by filter."""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from headrace.app import App
from headrace.cli.backend import time_now
from headrace.cli.command import Command, argument
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.filters import filter_options, make_filter
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line, progress
from headrace.cli.session import Session
from headrace.errors import InvalidInput, JobConflict, JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter

if TYPE_CHECKING:
    from headrace.cli.backend import Backend


@click.command("cancel", cls=Command)
@argument("ids", metavar="[ID]...", nargs=-1, help="Ids of jobs.")
@filter_options
@click.option("everything", "--all", is_flag=True, help="Every job that this command applies to.")
@click.option(
    "--reason", metavar="TEXT", default="cancelled from the CLI", help="Stored with the job."
)
@click.option("--dry-run", is_flag=True, help="Only count the jobs that match.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a bulk change.")
async def cancel(
    session: Session,
    *,
    ids: tuple[str, ...],
    everything: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    **flags: Any,
) -> int:
    """Cancel jobs by id, or all unfinished ones that match a filter.

    A running job is asked to stop at once.

    \b
    Examples:
      headrace jobs cancel 01980000-0000-7000-8000-000000000000
      headrace jobs cancel --queue mail --status pending --dry-run
    """
    flags = {name: value for name, value in flags.items() if value}
    async with session.backend() as backend:
        if ids:
            stop = functools.partial(backend.cancel, reason=reason)
            return await _each(
                session, ids, filtered=flags or everything, done="cancelled", verb=stop
            )
        wanted = _wanted(backend, flags, everything=everything)
        return await _bulk(
            session, backend, "cancel", wanted, dry_run=dry_run, yes=yes, reason=reason
        )


@click.command("retry", cls=Command)
@argument("ids", metavar="[ID]...", nargs=-1, help="Ids of jobs.")
@filter_options
@click.option("everything", "--all", is_flag=True, help="Every job that this command applies to.")
@click.option("from_stage", "--from", metavar="STAGE", help="Repeat this stage and those after it.")
@click.option("--dry-run", is_flag=True, help="Only count the jobs that match.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a bulk change.")
async def retry(
    session: Session,
    *,
    ids: tuple[str, ...],
    everything: bool,
    from_stage: str | None,
    dry_run: bool,
    yes: bool,
    **flags: Any,
) -> int:
    """Run jobs again: by id, or all failed and timed-out ones that match a filter.

    Finished stages are not run again, unless --from says so. A scheduled job given by id runs now.

    \b
    Examples:
      headrace jobs retry 01980000-0000-7000-8000-000000000000
      headrace jobs retry 01980000-0000-7000-8000-000000000000 --from parsing
      headrace jobs retry --task invoice.send --since 2h --yes
    """
    flags = {name: value for name, value in flags.items() if value}
    async with session.backend() as backend:
        if ids:
            again = functools.partial(backend.retry, from_stage=from_stage)
            return await _each(
                session, ids, filtered=flags or everything, done="will run again", verb=again
            )
        if from_stage is not None:
            raise InvalidInput("--from is for jobs that are given by id")
        wanted = _wanted(backend, flags, everything=everything)
        return await _bulk(session, backend, "retry", wanted, dry_run=dry_run, yes=yes)


@click.command("signal", cls=Command)
@argument("job_id", metavar="ID", help="The whole id, from `jobs list`.")
@argument("event", metavar="EVENT", help="The name of the event.")
@argument("value", metavar="[JSON]", default=None, help="What ctx.wait returns (default null).")
async def signal(session: Session, *, job_id: str, event: str, value: str | None) -> None:
    """Deliver an event to a job that waits for it, or will (`ctx.wait`).

    The first event of a name counts.

    \b
    Example:
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
    if session.json:
        print_json({"job_id": job_id, "event": event, "delivery": delivery})
    elif delivery == "delivered":
        print_line(f"{job_id}  event {event!r} delivered")
    else:
        print_line(f"{job_id}  had event {event!r} already; the first one counts")


def _wanted(backend: Backend, flags: dict[str, Any], *, everything: bool) -> JobFilter:
    if not flags and not everything:
        raise InvalidInput("which jobs? give ids, a filter such as --queue or --task, or --all")
    return make_filter(time_now(backend), **flags)


async def _each(
    session: Session,
    ids: Sequence[str],
    *,
    filtered: object,
    done: str,
    verb: Callable[[str], Awaitable[Job]],
) -> int:
    """Change one job after the other; a bad id among them changes nothing."""
    if filtered:
        raise InvalidInput("give ids or a filter, not both")
    answers: list[dict[str, Any]] = []
    code = OK
    for job_id in [parse_id(text) for text in ids]:
        try:
            job = await verb(job_id)
        except (JobNotFound, JobConflict) as error:
            notice(f"error: {error}")
            answers.append({"job_id": job_id, "done": False, "error": str(error)})
            code = FAILED
            continue
        answers.append({"job_id": job_id, "done": True, "status": job.status})
        if not session.json:
            asked = job.cancel_requested and not job.status.final
            print_line(f"{job_id}  {'asked to stop' if asked else done}")
    if session.json:
        print_json({"jobs": answers})
    return code


async def _bulk(
    session: Session,
    backend: Backend,
    action: Literal["cancel", "retry"],
    wanted: JobFilter,
    *,
    dry_run: bool,
    yes: bool,
    reason: str | None = None,
) -> int:
    """Change all jobs that match, which are counted and confirmed before."""
    matching = (await backend.bulk(action, wanted, dry_run=True)).matched
    changed = 0
    if not dry_run:
        if matching and not yes:
            _confirm(action, matching)
        with progress(action.capitalize(), matching, quiet=session.json) as advance:
            options: dict[str, Any] = {} if reason is None else {"reason": reason}
            if isinstance(backend, App):
                options["on_progress"] = lambda seen: advance(min(seen, matching))
            changed = (await backend.bulk(action, wanted, **options)).changed
    if session.json:
        print_json({"verb": action, "matching": matching, "changed": changed, "dry_run": dry_run})
    elif dry_run:
        print_line(f"Would {action} {plural(matching, 'job')}.")
    else:
        done = "Cancelled, or asked to stop" if action == "cancel" else "To run again"
        print_line(f"{done}: {plural(changed, 'job')} of {matching:,} that matched.")
    return OK


def _confirm(action: str, matching: int) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"this would {action} {plural(matching, 'job')}; add --yes to do it, "
            "or --dry-run to only count"
        )
    click.confirm(f"{action.capitalize()} {plural(matching, 'job')}?", abort=True, err=True)
