"""`headrace server`: the HTTP API over an App."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

import typer

from headrace.app import App
from headrace.cli.app_loader import reconfigure
from headrace.cli.command import command, group, whole
from headrace.cli.errors import tell
from headrace.cli.filters import parts
from headrace.cli.output import print_json_line, print_line
from headrace.cli.services.logs import log_to_stderr
from headrace.cli.session import Session
from headrace.engine.open import redacted
from headrace.server import serve
from headrace.signals import on_stop_signals

commands = group("The HTTP API over an App.")


@command(commands, "server")
async def server(
    session: Session,
    *,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Listen here; default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", parser=whole, help="And here; default 3989.")
    ] = None,
    redact: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Never show the values of these fields."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log only trouble.")] = False,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    Without keys it is open to programs on this machine, and refuses to listen any further.

    \b
    Examples:
      headrace server --app shop.jobs
      headrace server --app shop.jobs --host 0.0.0.0 --port 8080
    """
    app = reconfigure(session.load_app(), host=host, port=port)
    log_to_stderr(verbose=verbose, quiet=quiet)
    options: dict[str, Any] = {} if redact is None else {"redact": parts([redact])}

    def started(url: str) -> None:
        if session.json:
            print_json_line({"event": "serving", "url": url})
        else:
            print_line(f"Serving {redacted(app.settings.url)} at {url}, Ctrl-C stops it")

    async with app:
        await until_signal(app, on_start=started, **options)
    if session.json:
        print_json_line({"event": "stopped", "code": 0})
    else:
        tell("Stopped.")


async def until_signal(app: App, **options: Any) -> None:
    """Serve until told to stop; told again, without waiting for open requests."""
    serving = asyncio.ensure_future(serve(app, **options))
    with on_stop_signals(lambda _: serving.cancel()), contextlib.suppress(asyncio.CancelledError):
        await serving
