"""`headrace lanes`: who holds them and who waits."""

from __future__ import annotations

import click

from headrace.cli.command import Command
from headrace.cli.formatting import span
from headrace.cli.output import is_terminal, print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.errors import InvalidInput
from headrace.model.names import check_name, check_text


@click.command("lanes", cls=Command)
@click.option("--queue", metavar="NAME", help="Only this queue.")
@click.option("--lane", metavar="LANE", help="Only this lane, e.g. user:42.")
@click.option("--limit", "-n", metavar="N", type=int, default=100, help="Show at most this many.")
async def lanes(session: Session, *, queue: str | None, lane: str | None, limit: int) -> None:
    """Show lanes: who holds them, how many wait.

    \b
    Example:
      headrace lanes --queue scans
    """
    if not 1 <= limit <= 10_000:
        raise InvalidInput(f"--limit must be between 1 and 10000, got {limit}")
    async with session.backend() as backend:
        found = await backend.lanes(
            queue=None if queue is None else check_name("queue", queue),
            lane=None if lane is None else check_text("lane", lane),
            limit=limit,
        )
    if session.json:
        print_json({"lanes": found})
    elif not found and is_terminal():
        print_line("No lane is held or waited for.")
    else:
        print_table(
            ("LANE", "QUEUE", "USED", "WAITING", "OLDEST", "HOLDERS"),
            [
                (
                    view.lane,
                    view.queue,
                    f"{view.used}/{view.width}",
                    f"{view.waiting:,}",
                    "-" if view.oldest_age is None else span(view.oldest_age),
                    _holders(view.holders),
                )
                for view in found
            ],
            right=("USED", "WAITING", "OLDEST"),
        )


def _holders(holders: tuple[str, ...]) -> str:
    more = f" and {len(holders) - 3} more" if len(holders) > 3 else ""
    return " ".join(holders[:3]) + more or "-"
