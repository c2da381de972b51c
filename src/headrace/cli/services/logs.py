"""The log of a service: stderr, one line for each thing that an operator has to know; or JSON."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import click
import msgspec

from headrace.cli.columns import hanging
from headrace.cli.command import flag, together
from headrace.cli.formatting import clean
from headrace.tracing import current_ids
from headrace.tracing.current_job import CURRENT_JOB, about

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default=None,
    show_default=False,
    help="Log lines for people, or one JSON object a line (default text).",
)
log_options = together(
    log_format_option,
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


class _JsonFormat(logging.Formatter):
    """One JSON object for each record, on one line, whatever is in it."""

    # What a record may say of its job, by the name that it has in JSON.
    JOB = MappingProxyType(
        {"job": "job_id", "task": "task", "queue": "queue", "attempt": "attempt"}
    )

    def format(self, record: logging.LogRecord) -> str:
        """Return the object. What is not known is left out."""
        fields = {
            "time": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3]
            + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._job(record),
            **_trace(record),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            fields["exception"] = record.exc_text
        return msgspec.json.encode(
            {
                name: clean(value, lines=True) if isinstance(value, str) else value
                for name, value in fields.items()
            }
        ).decode()

    def _job(self, record: logging.LogRecord) -> dict[str, Any]:
        found = vars(record)
        job = CURRENT_JOB.get()
        known = {} if job is None or "job_id" in found else about(job)
        return {
            shown: value if isinstance(value, int) else str(value)
            for shown, name in self.JOB.items()
            if (value := found.get(name, known.get(name))) is not None
        }


def _trace(record: logging.LogRecord) -> dict[str, str]:
    """Return trace and span: those that the record brings from another process, or the current."""
    ids = (getattr(record, "trace_id", None), getattr(record, "span_id", None))
    if not all(isinstance(each, str) for each in ids):
        ids = current_ids() or (None, None)
    return {} if ids[0] is None else {"trace_id": str(ids[0]), "span_id": str(ids[1])}


def log_to_stderr(*, verbose: bool = False, quiet: bool = False, log_format: str = "text") -> None:
    """Set up logging, unless the App's own module has done so when it was imported.

    Ours at INFO, which is silent for jobs that complete, and trouble of everybody else's;
    `verbose` shows everything at INFO, `quiet` only trouble.
    """
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_JsonFormat() if log_format == "json" else _Format())
        root.addHandler(handler)
        root.setLevel(logging.INFO if verbose else logging.WARNING)
        # Whenever an App with tables is opened it says which database it has found.
        logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("headrace").setLevel(logging.WARNING if quiet else logging.INFO)


def without_jobs(record: logging.LogRecord) -> bool:
    """Filter out lines about single jobs, where those are printed in another way."""
    return not str(record.msg).startswith("Job %s")
