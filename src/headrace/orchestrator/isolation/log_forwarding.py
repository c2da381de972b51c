"""Log records of a child, sent to the worker's own loggers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from headrace.model.durable.context import Context
from headrace.orchestrator.isolation.errors import ForkedCopy
from headrace.orchestrator.isolation.protocol import Logged, printable
from headrace.tracing import current_ids

_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
_formatter = logging.Formatter()
# Longer texts are cut: a record is for people.
TEXT_LIMIT = 1_048_576


def levels() -> dict[str, int]:
    """Return the levels that this process has set, by logger; "" is the root."""
    found = {"": logging.getLogger().level}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET:
            found[name] = logger.level
    return found


def set_levels(levels: dict[str, int]) -> None:
    """In the child: log what the worker would log."""
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)


class Forwarder(logging.Handler):
    """In the child: sends records to the worker. `run` is for the logger of one job."""

    def __init__(self, send: Callable[[Logged], None], *, run: int | None = None) -> None:
        super().__init__()
        self._send = send
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(self._message(record))
        except ForkedCopy:
            # As in a program that configures no logging: warnings go to standard error.
            if logging.lastResort is not None and record.levelno >= logging.lastResort.level:
                logging.lastResort.handle(record)
        except Exception:
            self.handleError(record)

    def _message(self, record: logging.LogRecord) -> Logged:
        exception = record.exc_text
        if exception is None and record.exc_info:
            exception = _formatter.formatException(record.exc_info)
        return Logged(
            run=self._run or 0,
            logger=record.name if self._run is None else None,
            level=record.levelno,
            message=printable(record.getMessage()[:TEXT_LIMIT]),
            created=record.created,
            pathname=record.pathname,
            line=record.lineno,
            function=record.funcName,
            process=record.process or 0,
            thread=record.threadName,
            exception=None if exception is None else printable(exception[-TEXT_LIMIT:]),
            extra={
                **_ids(),
                **{
                    name: value
                    if isinstance(value, int | float | None)
                    else printable(str(value)[:TEXT_LIMIT])
                    for name, value in vars(record).items()
                    if name not in _STANDARD
                },
            },
        )


def _ids() -> dict[str, str]:
    """Return trace and span that the record belongs to: the worker is in others."""
    ids = current_ids()
    return {} if ids is None else {"trace_id": ids[0], "span_id": ids[1]}


def about_attempt(context: Context) -> dict[str, Any]:
    """Return what a record has to know about the job that runs in the child now."""
    return {
        "job_id": context.job_id,
        "task": context.task,
        "queue": context.queue,
        "attempt": context.attempt,
    }


def replay(logged: Logged, context: Context | None) -> None:
    """In the worker: log a record as if the handler had run here."""
    extra: dict[str, Any] = dict(logged.extra)
    if context is not None:
        extra = about_attempt(context) | extra
    message = logged.message
    logger = logging.getLogger(logged.logger)
    if logged.logger is None and context is not None:
        logger = context.log.logger
        message, options = context.log.process(message, {"extra": extra})
        extra = {**extra, **(options.get("extra") or {})}
    if not logger.isEnabledFor(logged.level):
        return
    record = logger.makeRecord(
        logger.name,
        logged.level,
        logged.pathname,
        logged.line,
        message,
        (),
        None,
        logged.function,
        {name: value for name, value in extra.items() if name not in _STANDARD},
    )
    record.created, record.msecs = logged.created, logged.created % 1 * 1000
    record.process, record.threadName = logged.process, logged.thread
    record.exc_text = logged.exception
    logger.handle(record)
