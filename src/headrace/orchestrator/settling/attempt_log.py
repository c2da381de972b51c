"""The attempt log: what is stored about an attempt that did not complete. No I/O."""

from __future__ import annotations

import traceback
from datetime import datetime

import msgspec

from headrace.model.job import ClaimedJob
from headrace.model.outcome import (
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    AttemptEntry,
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Reserved,
    Retry,
    Snoozed,
    TimedOut,
)

_NAMES: dict[type[Outcome], str] = {
    Completed: "completed",
    Retry: "retry",
    Failed: "failed",
    TimedOut: "timeout",
    Cancelled: "cancelled",
    Released: "released",
    Reserved: "released",
    Snoozed: "snoozed",
}
# Frames between the worker's slot and the handler's first line: no use to its author.
_OWN_FRAMES = ("headrace/orchestrator/", "headrace/task/signature.py")

NAME_LIMIT = 200


def outcome_name(outcome: Outcome) -> str:
    """Return one word for an outcome, for logs, counters and the attempt log."""
    return _NAMES[type(outcome)]


def describe_failure(error: BaseException) -> Failure:
    """Return a description of an error, short enough to be stored. Never raises, even if the
    error's own methods do.
    """
    return Failure(_name(error), error_text(error), _traceback(error))


def error_text(error: BaseException) -> str:
    """Return an error's message, or its type if it has none."""
    try:
        return shorten(str(error) or _name(error), MESSAGE_LIMIT)
    except BaseException as second:  # a broken __str__ must not hide the failure
        return f"<{_name(error)} whose text raised {_name(second)}>"


def shorten(text: str, limit: int) -> str:
    """Return the beginning of a text and its full length. Always valid Unicode."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "�")
    if len(text) <= limit:
        return text
    mark = f"… ({len(text):,} characters)"
    return text[: limit - len(mark)] + mark


def log_entry(
    job: ClaimedJob,
    outcome: Outcome,
    *,
    worker: str,
    started_at: datetime | None,
    ended_at: datetime,
) -> bytes | None:
    """Return the line for the attempt log; None for completed attempts and unstarted jobs."""
    match outcome:
        case Completed() | Released() | Reserved():
            return None
        case Retry(failure=failure) | Failed(failure=failure) | TimedOut(failure=failure):
            shown: Failure | None = failure
        case _:
            shown = None
    return msgspec.json.encode(
        AttemptEntry(
            attempt=job.attempt,
            token=job.token,
            outcome=outcome_name(outcome),
            worker=worker,
            ended_at=ended_at,
            started_at=started_at,
            failure=shown,
        )
    )


def _name(error: BaseException) -> str:
    try:
        return shorten(type(error).__name__, NAME_LIMIT)
    except BaseException:  # a class may compute even its name
        return "BaseException"


def _traceback(error: BaseException) -> str | None:
    try:
        # An error from a child process carries its own traceback.
        text = getattr(error, "remote_traceback", None) or _own_traceback(error)
        if not text:
            return None
        text = shorten(text.rstrip(), 1_000_000)
    except BaseException:  # the message is stored all the same
        return None
    # The end of a traceback is more useful than its beginning.
    return text if len(text) <= TRACEBACK_LIMIT else "…" + text[-(TRACEBACK_LIMIT - 1) :]


def _own_traceback(error: BaseException) -> str | None:
    trace = error.__traceback__
    while trace is not None and _own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None:
        return None
    return "".join(traceback.format_exception(type(error), error, trace))


def _own(filename: str) -> bool:
    path = filename.replace("\\", "/")
    return any(part in path for part in _OWN_FRAMES)
