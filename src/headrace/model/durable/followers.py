"""Jobs that follow from an outcome: which outcomes, and what travels with them."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from headrace.model.job import NewJob
from headrace.model.outcome import Cancelled, Completed, Failed, Outcome, TimedOut

FollowOn = Literal["completed", "failed", "ended"]
FOLLOW_ON: tuple[str, ...] = get_args(FollowOn)

FOLLOWS = "follows"
"""In the `meta` of a job: the id of the job that it follows."""


def is_followed(outcome: Outcome, on: str) -> bool:
    """Return whether jobs that were asked for `on` such an outcome follow from it."""
    match outcome:
        case Completed():
            return on in ("completed", "ended")
        case Failed() | TimedOut():
            return on in ("failed", "ended")
        case Cancelled():
            return on == "ended"
        case _:
            return False  # the job goes on


def follower(job: NewJob, job_id: str, meta: dict[str, Any]) -> NewJob:
    """Return a job as the follower of another, whose `meta` goes along, as with children."""
    own = msgspec.json.decode(job.meta) if job.meta else {}
    encoded = msgspec.json.encode({**meta, **own, FOLLOWS: job_id})
    return msgspec.structs.replace(job, meta=encoded)
