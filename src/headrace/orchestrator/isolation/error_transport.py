"""Errors between processes: sent as data, and rebuilt on the other side.

A rebuilt error has a new class with the names of the original's whole ancestry. It is a real
subclass of the nearest ancestor that is loaded there, so that `retryable`, `never_retry` and
`except` see what they would see if the handler had run in the worker.
"""

from __future__ import annotations

import sys
import traceback
from datetime import datetime
from pathlib import Path
from types import ModuleType, TracebackType

from headrace.errors import NotRetryable, RateLimited, RetryLater, Snooze, Suspended
from headrace.model.durable.awaited import decode_awaited, encode_awaited
from headrace.orchestrator.isolation.errors import RemoteError, RemoteTraceback
from headrace.orchestrator.isolation.protocol import Report, printable
from headrace.orchestrator.isolation.task_reference import MAIN
from headrace.orchestrator.running.outcomes import merge_suspensions

TEXT_LIMIT = 64 * 1024
_OWN = (
    str(Path(__file__).parent),
    str(Path(__file__).parents[2] / "task"),
    str(Path(traceback.__file__).parent / "asyncio"),
)


def describe(error: BaseException, *, retryable: bool = True) -> Report:
    """Return an error as data. `retryable` False: it is a `NotRetryable` on the other side.

    A group of nothing but sleeps and waits becomes one of them, as it does for handlers in the
    worker: groups cannot be rebuilt.
    """
    error = merge_suspensions(error)
    report = Report(
        ancestry=[
            ("__main__" if cls.__module__ == MAIN else cls.__module__, cls.__qualname__)
            for cls in type(error).__mro__
            if cls is not object
        ],
        message=printable(_text(error)[:TEXT_LIMIT]),
        traceback=printable(_traceback(error)[-TEXT_LIMIT:]),
        retryable=retryable,
    )
    match error:
        case RetryLater():
            report.kind, report.delay = "retry_later", _seconds(error.delay)
            report.at = error.at if isinstance(error.at, datetime) and error.at.tzinfo else None
            report.hold_lane = isinstance(error, RateLimited) and error.key
        case Snooze():
            report.kind, report.delay = "snooze", _seconds(error.delay)
        case Suspended():
            report.kind, report.delay = "suspended", _seconds(error.delay)
            report.awaits = encode_awaited(error.awaits)
    return report


def rebuild(report: Report) -> BaseException:
    """Return an error that stands for the described one."""
    error: BaseException
    match report.kind:
        case "suspended":
            error = Suspended(report.delay or 0.0, decode_awaited(report.awaits))
        case "retry_later" if report.hold_lane:
            error = RateLimited(report.message, after=report.delay or 0.0, key=True)
        case "retry_later":
            error = RetryLater(report.message, delay=report.delay, at=report.at)
        case "snooze":
            error = Snooze(report.delay or 0.0, report.message)
        case _:
            error = _stand_in(report)
    error.__cause__ = RemoteTraceback(report.traceback)
    return error


def is_memory_error(report: Report) -> bool:
    """Return whether it is a MemoryError."""
    return ("builtins", "MemoryError") in report.ancestry


def _stand_in(report: Report) -> RemoteError:
    for module, name in report.ancestry:
        base = _known_class(module, name)
        if base is None:
            continue
        try:
            return _make(report, base)
        except Exception:  # noqa: S112 - it cannot be subclassed: try its ancestor
            continue
    return _make(report, Exception)


def _make(report: Report, base: type[Exception]) -> RemoteError:
    """Return an instance of a class below `base` that has every name of the ancestry."""
    known = {cls.__name__ for cls in base.__mro__}
    names = [name.rpartition(".")[2] for _, name in report.ancestry] or [base.__name__]
    bases: tuple[type, ...] = (base,) if issubclass(base, RemoteError) else (RemoteError, base)
    if issubclass(RemoteError, base):
        bases = (RemoteError,)
    if not report.retryable and not issubclass(base, NotRetryable):
        bases += (NotRetryable,)
    cls: type = base
    for name in reversed([names[0], *(name for name in names[1:] if name not in known)]):
        cls = type(name, bases, {"__module__": report.ancestry[0][0]})
        bases = (cls,)
    error = _instance(cls, base)
    if not isinstance(error, RemoteError):
        raise TypeError(f"{base.__qualname__} makes instances of its own")
    error.args = (report.message,)
    error.remote_message = report.message
    error.remote_traceback = report.traceback
    str(error), repr(error)
    return error


def _instance(cls: type, base: type[Exception]) -> object:
    """Return an instance without calling the class's own constructor: its arguments are unknown."""
    try:
        return base.__new__(cls)
    except TypeError:
        return Exception.__new__(cls)


def _known_class(module: str, name: str) -> type[Exception] | None:
    """Return the class if this process has loaded it. Nothing is imported for an error.

    None for what is not an Exception (SystemExit, CancelledError), which would act on this process,
    and for groups, which cannot be made without their members.
    """
    found: object = sys.modules.get(module) or _main_as(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if (
        isinstance(found, type)
        and issubclass(found, Exception)
        and not issubclass(found, BaseExceptionGroup)
    ):
        return found
    return None


def _main_as(module: str) -> ModuleType | None:
    """Return `__main__` if it is this module: `python -m` gives it that name, a child does not."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return main if spec is not None and spec.name == module else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"<{type(error).__name__} that cannot be shown>"


def _traceback(error: BaseException) -> str:
    trace = _trimmed(error.__traceback__)
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        return ""


def _seconds(delay: object) -> float | None:
    """Return what a handler has given as a delay, if it is a number."""
    return float(delay) if isinstance(delay, int | float) else None


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the handler on, without our own frames that called it."""
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_OWN):
        first = first.tb_next
    return first or trace
