"""`headrace lanes`: who holds a lane, and how many wait."""

from __future__ import annotations

import click

from headrace.cli.command import Command, option
from headrace.cli.formatting import span
from headrace.cli.output import Columns
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.names import check_name, check_text
from headrace.model.views import LaneView

LANES: Columns[LaneView] = {
    "LANE": lambda lane: lane.lane,
    "QUEUE": lambda lane: lane.queue,
    ">USED": lambda lane: f"{lane.used}/{lane.width}",
    ">WAITING": lambda lane: f"{lane.waiting:,}",
    ">OLDEST": lambda lane: "-" if lane.oldest_age is None else span(lane.oldest_age),
    "HOLDERS": lambda lane: _holders(lane.holders),
}


@click.command("lanes", cls=Command)
@option("--queue", "NAME", "Only this queue.")
@option("--lane", "LANE", "Only this lane, e.g. user:42.")
@option("--limit -n", "N", "Show at most this many.", type=int, default=100)
async def lanes(session: CliSession, *, queue: str | None, lane: str | None, limit: int) -> None:
    """Show lanes: who holds them, how many wait.

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
    session.show_list("lanes", found, LANES, empty="No lane is held or waited for.")


def _holders(holders: tuple[str, ...]) -> str:
    more = f" and {len(holders) - 3} more" if len(holders) > 3 else ""
    return " ".join(holders[:3]) + more or "-"
