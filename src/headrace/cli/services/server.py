"""`headrace server`: the HTTP API over an App."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any

import click

from headrace.app import App
from headrace.cli.app_loader import reconfigure
from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import Command, option
from headrace.cli.errors import notice
from headrace.cli.filters import parts
from headrace.cli.output import print_json_line, print_line
from headrace.cli.services.logs import log_options, log_to_stderr
from headrace.cli.services.probes import probes_option, serving_probes
from headrace.cli.session import CliSession
from headrace.engine.stored_text import redacted
from headrace.loops.free_memory import keep_what_is_loaded, memory_given_back
from headrace.loops.signals import on_stop_signals
from headrace.probes.probe import STOPPING
from headrace.probes.store import StoreProbe
from headrace.server import serve
from headrace.tracing.set_up import exporting


@click.command("server", cls=Command)
@option("--host", "HOST", "Listen on this address (default 127.0.0.1).")
@option("--port", "PORT", "Listen on this port (default 3989).", type=int)
@option("--redact", "A,B", "Hide the values of these fields in responses.")
@probes_option
@bundle_option
@log_options
async def server(
    session: CliSession,
    *,
    host: str | None,
    port: int | None,
    redact: str | None,
    probes: str | None,
    log_format: str | None,
    verbose: bool,
    quiet: bool,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    Without keys it is open to programs on this machine, and refuses to listen on others.

      headrace server --app shop.jobs
      headrace server --app shop.jobs --host 0.0.0.0 --port 8080
    """
    app = reconfigure(
        session.load_app(), host=host, port=port, probes=probes, log_format=log_format
    )
    log_to_stderr(verbose=verbose, quiet=quiet, log_format=app.settings.log_format)
    options: dict[str, Any] = {} if redact is None else {"redact": parts([redact])}

    serving = Serving()

    def started(url: str) -> None:
        serving.trouble = None
        keep_what_is_loaded()
        if session.json:
            print_json_line({"event": "serving", "url": url})
        else:
            print_line(f"Serving {redacted(app.settings.url)} at {url}, Ctrl-C stops it")

    with exporting(app.settings.tracing, "headrace-server"):
        async with (
            serving_probes(app.settings, lambda: StoreProbe(app, lambda: serving.trouble)),
            app,
        ):
            await until_signal(app, serving, on_start=started, **options)
    if session.json:
        print_json_line({"event": "stopped", "code": 0})
    else:
        notice("Stopped.")


class Serving:
    """Why requests are not answered yet, or not any more; None while they are."""

    trouble: str | None = "it starts"


async def until_signal(app: App, serving: Serving, **options: Any) -> None:
    """Serve until a signal; a second one does not wait for open requests."""
    task = asyncio.ensure_future(serve(app, **options))

    def stop(_: signal.Signals) -> None:
        serving.trouble = STOPPING
        task.cancel()

    with (
        on_stop_signals(stop),
        memory_given_back(),
        contextlib.suppress(asyncio.CancelledError),
    ):
        await task
