"""Every error that Headrace raises on purpose.

    HeadraceError
    ├── InvalidInput            the caller's mistake; nothing was changed
    │   ├── UnknownTask
    │   ├── UnknownSchedule
    │   ├── UnknownWorkflow
    │   ├── UnknownEventType
    │   ├── UnknownAlertRule
    │   ├── UnknownDestination
    │   ├── InvalidArguments
    │   ├── PayloadTooLarge
    │   ├── InvalidName
    │   ├── InvalidWorkflow     every problem that was found, with file and line
    │   └── InvalidSetting
    ├── JobNotFound
    ├── ArtifactNotFound
    ├── JobConflict             the job's status does not allow what was asked
    │   └── LaneFull            the lane refuses jobs that would have to wait
    ├── RecordConflict          somebody else changed the record first
    ├── LeaseLost               another worker owns the job now
    ├── ResultTimeout           the job did not finish in the time given
    ├── JobFailed               the job whose result was asked for did not complete
    ├── SealedValue             a value of an encrypted task cannot be opened, or not be sealed
    │   ├── MissingEncryptionKey  … because this process does not have the key
    │   └── SealRefused         … because it was changed, or belongs to another job
    ├── EngineError
    │   ├── EngineUnavailable   try again later: the server is away
    │   │   ├── EngineRefused   … or does not let this user, or this database, in
    │   │   ├── KeyInDoubt      … or a transaction that has taken the key is still open
    │   │   ├── StoreUnavailable  … or one of several stores is: the others go on
    │   │   └── StoreReplaced   the database file was deleted or replaced while it was in use
    │   ├── StorageFull         no room to write; nothing was written
    │   ├── SchemaTooNew        a newer Headrace has migrated this store
    │   ├── MigrationNeeded     the store is to be migrated by somebody else first
    │   └── MissingDriver       an extra has to be installed
    ├── StageTimedOut           a stage took longer than its `timeout`
    ├── NotRetryable            raised by handlers: no further attempt
    │   ├── ParserError
    │   ├── ValidationError
    │   ├── AuthenticationError
    │   ├── WaitTimedOut        the event did not come in the time given
    │   └── ChildFailed         `ctx.gather`: children ended without a result
    └── WorkerUnhealthy         the worker gave up after `connection_retries`

Control flow that a handler may raise: `RetryLater`, `RateLimited` and `Snooze`. Control flow that a
handler lets pass: `Suspended`, which is no `Exception`, so that `except Exception` does not catch
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from numbers import Real
from typing import Any


class HeadraceError(Exception):
    """Anything that Headrace raises on purpose."""


class InvalidInput(HeadraceError):
    """What was asked for is not valid; nothing was changed."""


class UnknownTask(InvalidInput):
    """No task of this name is registered."""


class UnknownSchedule(InvalidInput):
    """No schedule has this name."""


class InvalidArguments(InvalidInput):
    """The arguments do not fit the task's signature."""


class PayloadTooLarge(InvalidInput):
    """The encoded arguments or result exceed the limit."""


class InvalidName(InvalidInput):
    """A queue, lane, task or key has a name that cannot be used."""


class InvalidSetting(InvalidInput):
    """A setting is unknown or has a value that cannot be used."""


class InvalidWorkflow(InvalidInput):
    """A workflow cannot be run as it is. `problems` are all that were found, each with its line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UnknownWorkflow(InvalidInput):
    """No workflow has this id, or none this version."""


class UnknownEventType(InvalidInput):
    """No event type of this name is declared."""


class UnknownDestination(InvalidInput):
    """No destination has this name."""


class UnknownAlertRule(InvalidInput):
    """No alert rule has this name."""


class JobNotFound(HeadraceError):
    """No job has this id; it may have been pruned from history."""


class ArtifactNotFound(HeadraceError):
    """A job has no such file, or the file is not in the store any more."""


class JobConflict(HeadraceError):
    """The job's status does not allow this; nothing was changed."""


class LaneFull(JobConflict):
    """No place of the job's lane is free, and the lane refuses jobs that would have to wait."""


class RecordConflict(HeadraceError):
    """The record was changed by somebody else; read it again."""


class LeaseLost(HeadraceError):
    """Another worker owns this job now; this attempt's result was discarded."""


class ResultTimeout(HeadraceError, TimeoutError):
    """The job has not finished within the time given; it goes on."""


class JobFailed(HeadraceError):
    """The job did not complete, so it has no result."""


class SealedValue(HeadraceError):
    """A value of an encrypted task cannot be opened here, or not be sealed."""


class MissingEncryptionKey(SealedValue):
    """This process does not have the key that is needed to open a value, or to seal one. `key` is
    the key's name, None if it has no keys at all.
    """

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


class SealRefused(SealedValue):
    """A sealed value was changed, or was moved from another job."""


class EngineError(HeadraceError):
    """The engine could not do what was asked."""


class EngineUnavailable(EngineError):
    """The engine cannot be reached now."""


class EngineRefused(EngineUnavailable):
    """The engine is there, but the user, the password or the database is wrong. A worker that
    starts ends with it; one that runs waits, as passwords are changed while programs run.
    """


class KeyInDoubt(EngineUnavailable):
    """A transaction that is still open has stored a job with this key; nothing was stored."""


class StoreUnavailable(EngineUnavailable):
    """One of several stores does not answer. Of what a call was to do, `stored` are jobs that other
    stores have taken, `left` jobs for which nothing was done, and `refused` those of which other
    stores have refused it.
    """

    def __init__(
        self,
        message: str,
        *,
        stored: Sequence[str] = (),
        left: Sequence[str] = (),
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.stored, self.left, self.refused = tuple(stored), tuple(left), tuple(refused)


class StoreReplaced(EngineUnavailable):
    """The file of the store was deleted, moved or replaced while it was in use; what was asked for
    is not acknowledged, and may be lost.
    """


class StorageFull(EngineError):
    """The engine has no room left to write; nothing was written."""


class SchemaTooNew(EngineError):
    """A newer Headrace has changed the store in a way that this one does not know."""


class MigrationNeeded(EngineError):
    """The store has to be migrated first, and this program must not do it."""


class MissingDriver(EngineError):
    """The driver for this engine is not installed."""


class WorkerUnhealthy(HeadraceError):
    """The worker lost its engine and was told not to wait for it."""


class NotRetryable(HeadraceError):
    """The work cannot succeed by trying again; the job fails at once."""


class ParserError(NotRetryable):
    """The input cannot be parsed."""


class ValidationError(NotRetryable):
    """The input is not valid."""


class AuthenticationError(NotRetryable):
    """The credentials were refused."""


class WaitTimedOut(NotRetryable, TimeoutError):
    """The event that a handler waited for did not come in the time given."""


class StageTimedOut(HeadraceError, TimeoutError):
    """A stage took longer than its `timeout`."""


class ChildFailed(NotRetryable):
    """Children of this job ended without a result. `children` tells which, and how."""

    def __init__(self, message: str, children: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.children = tuple(children)


class RetryLater(HeadraceError):
    """Raise in a handler to end this attempt and try again at a time of your choice."""

    def __init__(
        self, reason: str = "", *, delay: float | None = None, at: datetime | None = None
    ) -> None:
        super().__init__(reason or "the handler asked for a retry")
        if at is not None and (not isinstance(at, datetime) or at.utcoffset() is None):
            raise InvalidInput(
                f"at must be a datetime with a time zone, got {at!r}; use datetime.now(UTC) + …"
            )
        self.delay = None if delay is None else _seconds(delay)
        self.at = at


class RateLimited(RetryLater):
    """Raise in a handler that was told to slow down: this attempt ends, and the next one starts
    `after` so many seconds. With `key` nothing else of the job's lane starts before that, either.
    """

    def __init__(self, reason: str = "", *, after: float, key: bool = False) -> None:
        super().__init__(reason or "told to slow down", delay=after)
        self.key = bool(key)


class Snooze(HeadraceError):
    """Raise in a handler to be run again after `delay` seconds without spending an attempt."""

    def __init__(self, delay: float, reason: str = "") -> None:
        self.delay = _seconds(delay)
        super().__init__(reason or f"snoozed for {self.delay:g} s")


class Suspended(BaseException):
    """Leaves a handler that sleeps or waits, so that its slot is free. Let it pass: the handler is
    run again when it is time to go on.
    """

    def __init__(self, delay: float, awaits: tuple[Any, ...] = ()) -> None:
        super().__init__("the job sleeps or waits; let this pass through the handler")
        self.delay = delay
        self.awaits = awaits


def _seconds(delay: object) -> float:
    """What a handler computed, if it is a number; a worker bends it to what engines can store."""
    if isinstance(delay, bool) or not isinstance(delay, Real):
        raise InvalidInput(
            f"delay must be a number of seconds, got {delay!r} ({type(delay).__name__}); "
            "give seconds, such as 90 or timedelta(…).total_seconds()"
        )
    try:
        return float(delay)
    except OverflowError:
        return math.inf
