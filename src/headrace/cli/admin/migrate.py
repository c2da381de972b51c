"""`headrace migrate`: bring the schema of the store up to date."""

from __future__ import annotations

import asyncio

import click
import msgspec

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
@flag("--check", "Change nothing; exit code 1 if something is missing.")
@flag("--sql", "Change nothing; print what would be run.")
@flag("--wait", "Change nothing; wait until nothing is missing.")
async def migrate(session: CliSession, *, check: bool, sql: bool, wait: bool) -> int:
    """Bring the schema of the store up to date.

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
    settings = session.named_settings()
    engine = open_engine(settings.url)
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
    if session.json:
        more = {"refused": state.refused, "done": () if state.pending else done}
        print_json(msgspec.structs.asdict(state) | more)
    elif sql:
        nothing = "-- Nothing to run: `headrace migrate` does all there is to do."
        for line in (state.script or nothing).splitlines():
            print_line(line)
    else:
        _print(session, state, done)
    return FAILED if check and (state.pending or state.refused) else OK


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
