"""Log records of a child, sent to the worker's own loggers."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.model.context import Context
from headrace.orchestrator.isolation.errors import ForkedCopy
from headrace.orchestrator.isolation.protocol import Logged, printable

# Sent by themselves, or made again by the worker.
_NOT_SENT = {"name", "msg", "message", "args", "exc_info", "asctime", "relativeCreated"}
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
        attributes = {
            name: value
            if isinstance(value, int | float | None)
            else printable(str(value)[:TEXT_LIMIT])
            for name, value in vars(record).items()
            if name not in _NOT_SENT
        }
        exception = record.exc_text
        if exception is None and record.exc_info:
            exception = _formatter.formatException(record.exc_info)
        if exception is not None:
            attributes["exc_text"] = printable(exception[-TEXT_LIMIT:])
        return Logged(
            run=self._run or 0,
            logger=record.name if self._run is None else None,
            level=record.levelno,
            message=printable(record.getMessage()[:TEXT_LIMIT]),
            attributes=attributes,
        )


def replay(logged: Logged, context: Context | None) -> None:
    """In the worker: log a record as if the handler had run here."""
    logger = logging.getLogger(logged.logger)
    sent = {name: value for name, value in logged.attributes.items() if name not in _NOT_SENT}
    record = logging.makeLogRecord({**sent, "msg": logged.message, "levelno": logged.level})
    if logged.logger is None and context is not None:
        logger = context.log.logger
        record.msg, options = context.log.process(record.msg, {"extra": {}})
        vars(record).update(options.get("extra") or {})
    record.name = logger.name
    if logger.isEnabledFor(logged.level):
        logger.handle(record)
