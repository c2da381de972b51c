"""`headrace events`: the types of published events."""

from __future__ import annotations

from headrace.api_types.publishing import EventTypeView
from headrace.cli.command import group
from headrace.cli.formatting import shown_time
from headrace.cli.output import Columns
from headrace.cli.session import CliSession

commands = group("Show the types of events that jobs publish.")


@commands.command("types")
async def types(session: CliSession) -> None:
    """List the declared types of events; with --json their schemas as well.

    headrace events types
    """
    async with session.backend() as backend:
        found = await backend.event_types()
    columns: Columns[EventTypeView] = {
        "TYPE": lambda each: each.name,
        "DECLARED": lambda each: shown_time(each.declared_at),
        "SUMMARY": lambda each: each.summary,
    }
    none = "No event types: a program declares them with app.event_type(…)."
    session.show_list("event_types", found, columns, empty=none)
