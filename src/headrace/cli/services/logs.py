"""The log of a worker: stderr, one line for each thing that an operator has to know."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from headrace.cli.columns import hanging
from headrace.cli.command import flag, together
from headrace.cli.formatting import clean

log_options = together(
    flag("--verbose -v", "Log more details."),
    flag("--quiet -q", "Log warnings and errors only."),
)


class _Format(logging.Formatter):
    converter: Callable[[float | None], time.struct_time] = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-8s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging has it
        """One line that cannot play tricks on a terminal, nor pretend to be another line."""
        return clean(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """A traceback keeps its lines."""
        return clean(super().formatException(ei), lines=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a terminal that is narrower gets several, broken between words."""
        text = super().format(record)
        if "\n" in text or not sys.stderr.isatty():
            return text
        with contextlib.suppress(OSError):  # no size, as in some editors
            return hanging(text, os.get_terminal_size(sys.stderr.fileno()).columns or 80)
        return text


def log_to_stderr(*, verbose: bool = False, quiet: bool = False) -> None:
    """Set up logging, unless the App's own module has done so when it was imported.

    Ours at INFO, which is silent for jobs that complete, and trouble of everybody else's;
    `verbose` shows everything at INFO, `quiet` only trouble.
    """
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Format())
        root.addHandler(handler)
        root.setLevel(logging.INFO if verbose else logging.WARNING)
        # Whenever an App with tables is opened it says which database it has found.
        logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("headrace").setLevel(logging.WARNING if quiet else logging.INFO)


def without_jobs(record: logging.LogRecord) -> bool:
    """Filter out lines about single jobs, where those are printed in another way."""
    return not str(record.msg).startswith("Job %s")
