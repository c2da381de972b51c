"""The option that names bundles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def bundle_option(function: F) -> F:
    """Add --bundle to a command; its session has it."""
    return click.option(
        "--bundle", metavar="A,B", help="Load these installed bundles (default HEADRACE_BUNDLES)."
    )(function)
