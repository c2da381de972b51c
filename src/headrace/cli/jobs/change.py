"""`headrace jobs cancel` and `retry`: by id, or many at once by filter."""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click
import msgspec

from headrace.cli.backend import Action, Verbs
from headrace.cli.command import Command, argument
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.filters import filter_options, make_filter
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line, progress
from headrace.cli.session import Session
from headrace.errors import InvalidInput, JobConflict, JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter
from headrace.model.status import ACTIVE, Status


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
    async with session.verbs() as verbs:
        if ids:
            stop = functools.partial(verbs.cancel, reason=reason)
            return await _each(
                session, ids, filtered=flags or everything, done="cancelled", verb=stop
            )
        wanted = _wanted(verbs, flags, everything=everything, default=tuple(sorted(ACTIVE)))
        bulk = Bulk(session, verbs, "cancel", wanted, reason=reason)
        return await bulk.run(dry_run=dry_run, yes=yes)


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
    async with session.verbs() as verbs:
        if ids:
            again = functools.partial(verbs.retry, from_stage=from_stage)
            return await _each(
                session, ids, filtered=flags or everything, done="will run again", verb=again
            )
        if from_stage is not None:
            raise InvalidInput("--from is for jobs that are given by id")
        default = (Status.FAILED, Status.TIMEOUT)
        wanted = _wanted(verbs, flags, everything=everything, default=default)
        bulk = Bulk(session, verbs, "retry", wanted)
        return await bulk.run(dry_run=dry_run, yes=yes)


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
    async with session.verbs() as verbs:
        delivery = await verbs.signal(job_id, event, decoded)
    if session.json:
        print_json({"job_id": job_id, "event": event, "delivery": delivery})
    elif delivery == "delivered":
        print_line(f"{job_id}  event {event!r} delivered")
    else:
        print_line(f"{job_id}  had event {event!r} already; the first one counts")


def _wanted(
    verbs: Verbs, flags: dict[str, Any], *, everything: bool, default: tuple[Status, ...]
) -> JobFilter:
    if not flags and not everything:
        raise InvalidInput("which jobs? give ids, a filter such as --queue or --task, or --all")
    wanted = make_filter(verbs.now(), **flags)
    return wanted if wanted.statuses else msgspec.structs.replace(wanted, statuses=default)


async def _each(
    session: Session,
    ids: Sequence[str],
    *,
    filtered: object,
    done: str,
    verb: Callable[[str], Awaitable[Job]],
) -> int:
    """One after the other, so that each gets its own answer; a bad id changes nothing."""
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


class Bulk:
    """One change of all jobs that match, counted and confirmed before it happens."""

    def __init__(
        self,
        session: Session,
        verbs: Verbs,
        action: Action,
        wanted: JobFilter,
        *,
        reason: str | None = None,
    ) -> None:
        self._session = session
        self._verbs = verbs
        self._action = action
        self._wanted = wanted
        self._reason = reason

    async def run(self, *, dry_run: bool, yes: bool) -> int:
        """Do it, if it is wanted."""
        matching = await self._verbs.count(self._action, self._wanted)
        if dry_run:
            self._tell(matching, 0, dry_run=True)
            return OK
        if matching and not yes:
            self._confirm(matching)
        quiet = self._session.json
        with progress(self._action.capitalize(), matching, quiet=quiet) as advance:
            changed = await self._verbs.change(
                self._action, self._wanted, self._reason, lambda seen: advance(min(seen, matching))
            )
        self._tell(matching, changed, dry_run=False)
        return OK

    def _confirm(self, matching: int) -> None:
        if not sys.stdin.isatty():
            raise InvalidInput(
                f"this would {self._action} {plural(matching, 'job')}; add --yes to do it, "
                "or --dry-run to only count"
            )
        question = f"{self._action.capitalize()} {plural(matching, 'job')}?"
        click.confirm(question, abort=True, err=True)

    def _tell(self, matching: int, changed: int, *, dry_run: bool) -> None:
        verb = self._action
        if self._session.json:
            print_json({"verb": verb, "matching": matching, "changed": changed, "dry_run": dry_run})
        elif dry_run:
            print_line(f"Would {verb} {plural(matching, 'job')}.")
        else:
            done = "Cancelled, or asked to stop" if verb == "cancel" else "To run again"
            print_line(f"{done}: {plural(changed, 'job')} of {matching:,} that matched.")
