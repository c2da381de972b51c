"""The log of a worker: stderr, one line for each thing that an operator has to know."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headrace.cli.command import flag, together

log_options = together(
    flag("--verbose -v", "Log more details."),
    flag("--quiet -q", "Log warnings and errors only."),
)


class _Format(logging.Formatter):
    converter: Callable[[float | None], time.struct_time] = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-8s %(message)s", "%Y-%m-%dT%H:%M:%S")


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
    logging.getLogger("headrace").setLevel(logging.WARNING if quiet else logging.INFO)


def without_jobs(record: logging.LogRecord) -> bool:
    """Filter out lines about single jobs, where those are printed in another way."""
    return not str(record.msg).startswith("Job %s")
