"""Commands."""

from __future__ import annotations

import click


def commands() -> click.Group:
    """Return the group."""
    return click.Group("ingest", help="Documents: add, find, list, remove.")
