"""How an attempt ended. Outcomes are values: decide by `match`, never by flags."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from headrace.model.durable.awaited import Awaited

if TYPE_CHECKING:
    from headrace.model.job import NewJob

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 8_000


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong, in a form that can be kept and shown."""

    type: str
    message: str
    traceback: str | None = None


class Completed(msgspec.Struct, frozen=True, gc=False):
    """The handler returned; `result` is its JSON."""

    result: bytes = b"null"


class Retry(msgspec.Struct, frozen=True):
    """The attempt failed and is spent; try again after `delay` seconds. Nothing of the job's lane
    starts for `hold_lane` seconds. `counts` False: a circuit breaker does not count it.
    """

    failure: Failure
    delay: float
    hold_lane: float = 0.0
    counts: bool = True


class Failed(msgspec.Struct, frozen=True):
    """The job failed for good. Nothing of its lane starts for `hold_lane` seconds. `counts` False:
    a circuit breaker does not count it.
    """

    failure: Failure
    hold_lane: float = 0.0
    counts: bool = True


class TimedOut(msgspec.Struct, frozen=True):
    """The job ran out of time and of attempts."""

    failure: Failure


class Cancelled(msgspec.Struct, frozen=True):
    """The job was cancelled while it ran."""

    reason: str = "cancelled"


class Released(msgspec.Struct, frozen=True):
    """The job was given back unstarted: no attempt is spent and its place is kept."""


class Reserved(msgspec.Struct, frozen=True):
    """This worker does not know the job's task: given back as by `Released`, and until it is
    claimed again it is offered only to workers that know its task. So are those of its task that
    come next in line, unless it is `alone`: it is this job that the worker cannot run.
    """

    alone: bool = False


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to be run again later: no attempt is spent.

    With `awaits` the job is suspended: it is run again as soon as one of these has come about, and
    after `delay` in any case. With `started` False the handler was not called: the job has to
    start by its time, if it has one, as before.
    """

    delay: float
    awaits: tuple[Awaited, ...] = ()
    started: bool = True


# Neither says anything more: one of each is enough.
RELEASED = Released()
RESERVED = Reserved()

Outcome = Completed | Retry | Failed | TimedOut | Cancelled | Released | Reserved | Snoozed


class AttemptEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a job's attempt log. A completed attempt leaves none: the job itself tells."""

    attempt: int
    token: int
    outcome: str
    worker: str
    ended_at: datetime
    started_at: datetime | None = None
    failure: Failure | None = None


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """An outcome, with the token that proves the right to record it.

    `entry` is one JSON object without newlines (an encoded `AttemptEntry`) that is appended to the
    job's attempt log, or None. `follow` are jobs that are stored together with the outcome.
    """

    job_id: str
    token: int
    outcome: Outcome
    entry: bytes | None = None
    follow: tuple[NewJob, ...] = ()
