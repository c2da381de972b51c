"""`headrace bulk`: bulk actions that a server does in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.api_types.bulk import BulkView
from headrace.cli.backend import time_now
from headrace.cli.command import argument, group
from headrace.cli.formatting import ago, plural
from headrace.cli.ids import pick_id
from headrace.cli.output import Columns
from headrace.cli.session import CliSession

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

commands = group("List, show, stop and resume bulk actions in the background.")

BULK = argument("bulk_id", "ID", "The id, or its beginning, from `bulk list`.")


@commands.command("list")
async def list_all(session: CliSession) -> None:
    """List bulk actions, newest first.

    headrace bulk list
    """
    async with session.backend() as backend:
        found = await backend.bulk_actions()
        now = time_now(backend)
    columns: Columns[BulkView] = {
        "ID": lambda each: each.id,
        "ACTION": lambda each: each.action,
        "STATE": lambda each: each.state,
        ">MATCHED": lambda each: f"{each.matched:,}",
        ">CHANGED": lambda each: f"{each.changed:,}",
        "WHO": lambda each: each.who,
        "MADE": lambda each: ago(each.made_at, now),
    }
    session.show_list("bulk", found, columns, empty="No bulk actions.")


@commands.command("show")
@BULK
async def show(session: CliSession, *, bulk_id: str) -> None:
    """Show how far a bulk action is, and how it ended.

    headrace bulk show 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        _show(session, await backend.bulk_action(await _whole(backend, bulk_id)))


@commands.command("stop")
@BULK
async def stop(session: CliSession, *, bulk_id: str) -> None:
    """Stop a bulk action. Jobs that were changed stay so.

    headrace bulk stop 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        _show(session, await backend.stop_bulk(await _whole(backend, bulk_id)))


@commands.command("resume")
@BULK
async def resume(session: CliSession, *, bulk_id: str) -> None:
    """Go on with a bulk action that was stopped, or has failed.

    headrace bulk resume 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        _show(session, await backend.resume_bulk(await _whole(backend, bulk_id)))


async def _whole(backend: Backend, text: str) -> str:
    return pick_id(text, [each.id for each in await backend.bulk_actions()])


def _show(session: CliSession, bulk: BulkView) -> None:
    session.show(
        bulk,
        f"{bulk.id}  {bulk.action}, {bulk.state}: changed {plural(bulk.changed, 'job')} of "
        f"{bulk.matched:,} so far",
        *([bulk.error] if bulk.error else []),
    )
