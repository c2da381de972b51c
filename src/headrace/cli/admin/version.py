"""`headrace version`."""

from __future__ import annotations

import platform
import sqlite3

import click

from headrace.cli.command import Command
from headrace.cli.output import print_json, print_line
from headrace.cli.session import CliSession
from headrace.version import __version__


@click.command("version", cls=Command)
async def version(session: CliSession) -> None:
    """Show versions, for a bug report.

    \b
    Example:
      headrace version --json
    """
    versions = {
        "headrace": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    if session.json:
        print_json(versions)
    else:
        print_line(", ".join(f"{name} {number}" for name, number in versions.items()))
