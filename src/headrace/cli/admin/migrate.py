"""`headrace migrate`: bring the schema of the store up to date."""

from __future__ import annotations

import asyncio

import click
import msgspec

from headrace.cli.bundles.migrate import TablesView, migrate_bundles, print_tables
from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import Command, flag
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.output import print_json, print_line
from headrace.cli.session import CliSession
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.errors import EngineUnavailable, InvalidInput, SchemaTooNew
from headrace.model.views import SchemaState

WAIT_SECONDS = 1.0


@click.command("migrate", cls=Command)
@bundle_option
@flag("--check", "Change nothing; exit code 1 if something is missing.")
@flag("--sql", "Change nothing; print what would be run.")
@flag("--wait", "Change nothing; wait until nothing is missing.")
async def migrate(session: CliSession, *, check: bool, sql: bool, wait: bool) -> int:
    """Bring the store, and the tables of bundles, up to date.

    Programs do this by themselves when they open a store, unless the setting migrate is "never".

      headrace migrate --check
      headrace migrate --sql > migrate.sql
      headrace migrate
    """
    if check + sql + wait > 1:
        raise InvalidInput("--check, --sql and --wait exclude each other; use one of them")
    if session.remote:
        raise InvalidInput(
            "migrate works on an engine; name the engine with --url, or unset API_URL"
        )
    app = session.closed_app()
    engine = open_engine(app.settings.url, stores=app.settings.stores)
    try:
        state = await (_when_ready(engine) if wait else engine.schema())
        done = state.pending
        if state.refused and not check:
            raise SchemaTooNew(
                f"{session.shown_url} is for programs that know version {state.min_program}; this "
                f"Headrace knows versions up to {state.known}. Upgrade Headrace here."
            )
        if not (check or sql or wait):
            await engine.migrate()
            state = await engine.schema()
    finally:
        await engine.close()
    tables: list[TablesView] = []
    if app.settings.bundles:
        tables = await migrate_bundles(app, change=not (check or sql or wait), sql=sql, wait=wait)
    if session.json:
        more = {"refused": state.refused, "done": () if state.pending else done}
        also = {"bundles": tables} if tables else {}
        print_json(msgspec.structs.asdict(state) | more | also)
    elif sql:
        nothing = "-- Nothing to run: `headrace migrate` does all there is to do."
        scripts = "\n".join(filter(None, (state.script, *(view.script for view in tables))))
        for line in (scripts or nothing).splitlines():
            print_line(line)
    else:
        _print(session, state, done)
        for view in tables:
            print_tables(view)
    if any(view.failure for view in tables):
        return FAILED
    pending = state.pending or state.refused or any(view.pending for view in tables)
    return FAILED if check and pending else OK


async def _when_ready(engine: Engine) -> SchemaState:
    """Return the state as soon as nothing is missing. A server that is away may come back."""
    shown = ""
    while True:
        try:
            state = await engine.schema()
            if state.refused or not state.pending:
                return state
            reason = f"waiting for {', '.join(state.pending)}"
        except EngineUnavailable as error:
            reason = f"waiting: {error}"
        if reason != shown:
            notice(shown := reason)
        await asyncio.sleep(WAIT_SECONDS)


def _print(session: CliSession, state: SchemaState, done: tuple[str, ...]) -> None:
    print_line(f"Schema {state.version} at {session.shown_url}, this Headrace knows {state.known}.")
    if state.refused:
        print_line(f"It is for programs that know version {state.min_program}. Upgrade Headrace.")
    elif state.pending:
        print_line(f"Missing: {', '.join(state.pending)}.")
    else:
        print_line(f"Applied: {', '.join(done)}." if done else "Nothing is missing.")
