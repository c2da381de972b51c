"""`headrace status` and `headrace errors`: what is wrong, and what jobs failed with."""

from __future__ import annotations

import click

from headrace.api_types.monitoring import ErrorGroup, Summary
from headrace.cli.backend import time_now
from headrace.cli.command import Command, option
from headrace.cli.errors import notice
from headrace.cli.filters import parts
from headrace.cli.formatting import ago, parse_moment, plural
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession

BARS = "▁▂▃▄▅▆▇█"
LINE = 12


@click.command("status", cls=Command)
async def status(session: CliSession) -> None:
    """Say what is wrong now, and what to do about it.

    `headrace doctor` looks deeper, at the engine itself. With API_URL it asks that server.

      headrace status
      headrace status --json | jq .findings
    """
    async with session.backend() as backend:
        found = await backend.summary()
    if session.json:
        print_json(found)
        return
    for finding in found.findings:
        print_line(f"{finding.level}: {finding.detail}.")
        if finding.remedy:
            print_line(f"  {session.advice(finding.remedy)}")
    if not found.findings:
        print_line("All is well.")
    print_line()
    print_line(_counts(found))


def _counts(found: Summary) -> str:
    counts = ", ".join(
        f"{sum(getattr(queue, state) for queue in found.queues):,} {state}"
        for state in ("running", "ready", "waiting", "scheduled")
    )
    alive = sum(worker.alive for worker in found.workers)
    return f"{counts}; {plural(alive, 'worker')} alive"


@click.command("errors", cls=Command)
@option("--queue", "NAME", "Only this queue; may be repeated, or a,b.", multiple=True)
@option("--task", "NAME", "Only this task; may be repeated, or a,b.", multiple=True)
@option("--since", "TIME", "Failed after: 30m, 2h, 7d ago, or ISO 8601.")
@option("--until", "TIME", "Failed before; same forms.")
async def errors(
    session: CliSession,
    *,
    queue: tuple[str, ...],
    task: tuple[str, ...],
    since: str | None,
    until: str | None,
) -> None:
    """Show what jobs failed with, in groups of the same error.

    Errors that differ only in ids, numbers and names are one group. The newest 5,000 failures are
    looked at. With API_URL it asks that server.

      headrace errors --since 2h
      headrace errors --task invoice.send --json
    """
    async with session.backend() as backend:
        now = time_now(backend)
        found = await backend.errors(
            queues=parts(queue),
            tasks=parts(task),
            since=None if since is None else parse_moment("--since", since, now),
            until=None if until is None else parse_moment("--until", until, now),
        )
    if session.json:
        print_json(found)
        return
    if not found.groups:
        print_line("No job has failed.")
        return
    columns: Columns[ErrorGroup] = {
        ">JOBS": lambda group: f"{group.count:,}",
        "LAST": lambda group: ago(group.last_at, now),
        "WHEN": lambda group: sparkline(group.minutes),
        "TASK": lambda group: group.task,
        "ERROR": lambda group: f"{group.error_type or '-'}: {group.message}",
    }
    print_table(columns, found.groups)
    if found.other_groups:
        others = (
            f"{plural(found.other_failures, 'failure')} in {plural(found.other_groups, 'group')}"
        )
        print_line(f"and {others} more")
    if not found.complete:
        notice(f"note: only the newest {found.looked_at:,} failures were looked at")


def sparkline(counts: list[int]) -> str:
    """Counts as bars, together from the first to the last, the highest as high as can be."""
    size = -(-len(counts) // LINE)
    sums = [sum(counts[start : start + size]) for start in range(0, len(counts), size)]
    highest = max(sums, default=0) or 1
    return "".join("·" if not each else BARS[(each * len(BARS) - 1) // highest] for each in sums)
