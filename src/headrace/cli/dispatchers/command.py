"""`headrace dispatcher`: what starts work, by the clock or by messages."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import group
from headrace.cli.dispatchers.events import list_dispatchers, queue
from headrace.cli.filters import parts
from headrace.cli.formatting import plural
from headrace.cli.output import print_json_line
from headrace.cli.services.logs import log_to_stderr
from headrace.cli.session import CliSession
from headrace.engine.open import redacted

commands = group("Create jobs by cron or from a broker.")
log = logging.getLogger("headrace.cron")


@commands.command("cron")
@click.option(
    "--config", metavar="FILE", help="Settings and schedules (default config/dispatcher.yaml)."
)
@bundle_option
@click.option("--verbose", "-v", is_flag=True, help="Log more details.")
@click.option("--quiet", "-q", is_flag=True, help="Log warnings and errors only.")
async def cron(
    session: CliSession, *, config: str | None, bundle: str | None, verbose: bool, quiet: bool
) -> int:
    """Create the jobs of schedules when they are due, until SIGTERM or Ctrl-C.

    Schedules that the App declares, and those of the file, are stored first. Any number of
    dispatchers may run: each time of a schedule makes one job.

    \b
    Examples:
      headrace dispatcher cron --app shop.jobs
      headrace dispatcher cron --app shop.jobs --config config/dispatcher.yaml
    """
    if bundle is not None:
        session.use_bundles(parts([bundle]))
    app = session.load_app()
    schedules = app.schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.run import cron_dispatcher, run_cron  # noqa: PLC0415 - an extra

    dispatcher = cron_dispatcher(app, None if config is None else Path(config))
    log_to_stderr(verbose=verbose, quiet=quiet)
    declared = len(schedules.declared) + sum(map(len, dispatcher.files.values()))
    log.info(
        "Cron dispatcher %s on %s, %s declared",
        *(dispatcher.id, redacted(app.settings.url), plural(declared, "schedule")),
    )
    try:
        code = await run_cron(dispatcher)
    finally:
        await app.close()
    if session.json:
        print_json_line({"event": "stopped", "code": code, "made": dispatcher.firing.made})
    return code


commands.add_command(queue)
commands.add_command(list_dispatchers)
