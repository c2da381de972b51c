"""`headrace events`: the types of published events."""

from __future__ import annotations

from headrace.cli.command import group
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import CliSession

commands = group("Show the types of events that jobs publish.")


@commands.command("types")
async def types(session: CliSession) -> None:
    """List the declared types of events; with --json their schemas as well.

    \b
    Example:
      headrace events types
    """
    async with session.backend() as backend:
        found = await backend.event_types()
    if session.json:
        print_json({"event_types": found})
    elif not found:
        print_line("No event types: a program declares them with app.event_type(…).")
    else:
        print_table(
            {
                "TYPE": lambda each: each.name,
                "DECLARED": lambda each: f"{each.declared_at:%Y-%m-%d %H:%M}",
                "SUMMARY": lambda each: each.summary,
            },
            found,
        )
