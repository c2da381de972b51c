"""The engine contract: what every engine promises, verb by verb.

The verbs are in `contract/`, one file for each group; each engine implements a group in a file of
the same name (`README.md` has the table).

Rules that hold for all of them:

* Time is the engine's own (the server's, or this machine's for SQLite) plus `clock.offset`.
* A write of a running attempt carries its token. It is applied only while the job is running
  under that token; otherwise it is refused and changes nothing.
* Every verb is atomic: all of it happens, or it raises and nothing has happened. Where a lost
  connection leaves that open, `EngineUnavailable` is raised and repeating the call is safe.
* A lane belongs to its queue. A job holds a place in its lane while it is ready, running, or
  waiting for a retry with `hold`. Places never exceed the lane's width, except after the width
  was made smaller: then nothing is admitted until enough places are free.
* A place is given by priority (higher first), then by the order of arrival. A job that comes back
  (`yield` retry, release) has its old place in that order.
* A new job sets the width of its lane, at the moment when it is due: when it is inserted, or later
  if it was scheduled; of several in one call the last. A job that comes back (retry, snooze,
  release, rerun) leaves the width as it is, unless the lane is empty: then its own counts.
* A ready job that a worker has settled with `Reserved` is offered only to workers that know its
  task, until it is claimed or put back. It keeps its place by priority and arrival; jobs of the
  same task and queue that come next in line may be reserved with it. So a backlog of jobs that a
  worker does not know is never in the way of those that it knows.
* A job that is not running has no worker and no start; one that ended while it ran keeps those of
  that attempt. A job shows its worker by name.
* Times are kept to the millisecond at least. `run_at` is when the job is due: of a retry or a
  snooze that is its new time; a release leaves it alone; a rerun is due at once.
* No time is kept that cannot be read back: one before 1970 is kept as 1970, one after 9998 as the
  end of that year, a delay of more than 100 years as 100 years; what is not a number is due at
  once. One that was stored all the same is shown as the nearest of these.
* A cancelled job has the reason in `error` and no `error_type`. If it was asked to stop, the
  reason is that of the first request, whatever the attempt says.
* What the outside world says (errors, reasons, messages, names of stages, workers and hosts) may
  contain any character. Those that a store cannot keep are replaced by U+FFFD: NUL characters and
  lone surrogates. No outcome and no note is refused for them.
* A job's attempt log has at most 262,144 characters; the oldest go first.
* Text is ordered by its UTF-8 bytes.
* A job that was snoozed with `awaits` is suspended while it is scheduled. What it awaits is
  forgotten when it leaves that state, and shown until then. `hold` counts as for a retry.
* A key is a lane of a queue, or the queue itself, which is its lane "". A start is counted when a
  job is leased, by the rate of its key: what an operator has set (`set_rate`), which counts for
  all jobs of the key; or else what the newest stored job said, which counts for the jobs of the
  lane that carry a rate. In any half-open window of W seconds the costs of the jobs that start add
  up to less than W / interval + the burst, or the largest cost if that is more: for jobs of cost 1
  and n intervals at most n + burst - 1. What is released was counted all the same. Where a rate
  does not `count_retries`, attempts after the first start without being counted. If the rate of a
  key changes, what has started counts by the new one, and who is parked waits as long as that says.
* Nothing of a key starts while it is held, counted or not. A rate lets no burst follow a hold.
* A job of a lane that may not start yet is parked by the claim that meets it: it is scheduled for
  a time at which it may, shows `parked`, keeps its place in the lane, and spends no attempt. Those
  of a key start by priority, then arrival, as far as they had places in the lane at the same time.
  Whatever ends one of them, the best of the others starts no later for it, and few are touched.
  A queue whose rate is used up, or that is held, is passed over as if it was paused.
* `audit` is empty at any moment.
* A store has two numbers: the version of its schema, and `min_program`, the lowest version that a
  program must know to use it. A program that knows `min_program` uses the store, also one that is
  started after a newer program has migrated it, with all verbs. Only a migration that states so
  raises `min_program`; from then on older programs are refused when they open the store. A store
  that lacks nothing is opened without any change of its schema, and without the right to make one.

`tests/engine/` is the conformance suite; an engine is right when it passes it whole.
"""

from __future__ import annotations

from typing import Protocol

from headrace.engine.contract.control import Steering
from headrace.engine.contract.insert import Producing, TransactionalProducing
from headrace.engine.contract.lifecycle import Lifecycle
from headrace.engine.contract.records import Records
from headrace.engine.contract.upkeep import Upkeep
from headrace.engine.contract.views import Viewing
from headrace.engine.contract.worker import (
    CancelSignal,
    JobsSignal,
    LeaseKeeper,
    Working,
    WorkSignal,
)

__all__ = [
    "CancelSignal",
    "Engine",
    "JobsSignal",
    "LeaseKeeper",
    "Lifecycle",
    "Producing",
    "Records",
    "Steering",
    "TransactionalProducing",
    "Upkeep",
    "Viewing",
    "WorkSignal",
    "Working",
]


class Engine(Lifecycle, Producing, Working, Upkeep, Steering, Viewing, Records, Protocol):
    """The full engine contract."""
