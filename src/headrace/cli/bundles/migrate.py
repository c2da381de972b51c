"""The tables of bundles, for `headrace migrate`."""

from __future__ import annotations

import asyncio

import msgspec

from headrace.app import App
from headrace.bundles import LoadedBundle
from headrace.bundles.imports import told
from headrace.cli.errors import notice
from headrace.cli.output import print_line

WAIT_SECONDS = 1.0


class TablesView(msgspec.Struct, kw_only=True):
    """How the tables of a bundle are now, and what was done."""

    bundle: str
    where: str = ""
    version: str | None = None
    known: str | None = None
    pending: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    script: str = ""
    failure: str | None = None


async def migrate_bundles(app: App, *, change: bool, sql: bool, wait: bool) -> list[TablesView]:
    """Return the tables of each bundle of an App, brought up to date if `change`. A bundle that
    cannot be loaded or migrated says so.
    """
    views = [TablesView(bundle=each.name, failure=each.reason) for each in app.bundles.failures]
    with_tables = [loaded for loaded in app.bundles if loaded.bundle.tables is not None]
    return views + [
        await _migrate(loaded, change=change, sql=sql, wait=wait) for loaded in with_tables
    ]


async def _migrate(loaded: LoadedBundle, *, change: bool, sql: bool, wait: bool) -> TablesView:
    setup, name = loaded.setup, loaded.bundle.name
    view = TablesView(bundle=name)
    try:
        if change:
            view.done = tuple(await setup.migrate())
        shown = ""
        while True:
            state = await setup.tables_state()
            if state is None or not (wait and state.pending):
                break
            reason = f"waiting for {', '.join(state.pending)} of bundle {name}"
            if reason != shown:
                notice(shown := reason)
            await asyncio.sleep(WAIT_SECONDS)
        if state is not None:
            view.where, view.pending = state.where, state.pending
            view.version, view.known = state.version, state.known
        if sql:
            view.script = await setup.migration_script()
    except Exception as error:
        view.failure = told(error)
    finally:
        await setup.close()
    return view


def print_tables(view: TablesView) -> None:
    """Print one bundle's tables."""
    if view.failure:
        notice(f"error: bundle {view.bundle}: {view.failure}")
        return
    print_line(f"Bundle {view.bundle}: version {view.version or 'none'} in {view.where}.")
    if view.pending:
        print_line(f"Missing: {', '.join(view.pending)}.")
    else:
        print_line(f"Applied: {', '.join(view.done)}." if view.done else "Nothing is missing.")
