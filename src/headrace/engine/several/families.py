"""Jobs that are stored together with another, or with a record, stay in its store.

So the queue of a child may be in two stores: workers claim it in all of them. What counts in one
store only, a lane and its rate, must not be split over two: such jobs are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headrace.errors import InvalidInput
from headrace.model.job import NewJob
from headrace.model.outcome import Failed, Failure, Settlement

if TYPE_CHECKING:
    from headrace.engine.several.store.member import Member
    from headrace.engine.several.store.members import SeveralMembers


def refuse_split(job: NewJob, beside: str, there: Member, home: Member) -> None:
    """Raise `InvalidInput` if a job that has to be stored elsewhere than its queue has a lane."""
    if job.lane is None:
        return
    raise InvalidInput(
        f"the job of task {job.task!r} has the lane {job.lane!r} of queue {job.queue!r}, which is "
        f"in {home.shown}, and has to be stored beside {beside} in {there.shown}. A lane keeps its "
        "order in one store only: leave the lane out, or give both queues one store"
    )


def kept_together(stores: SeveralMembers, member: Member, each: Settlement) -> Settlement:
    """Return a settlement whose followers can be stored beside its job; else one that lets the job
    fail and says why.
    """
    try:
        for job in each.follow:
            home = stores.home_of(job.queue)
            if home is not member:
                refuse_split(job, f"job {each.job_id}, which it follows,", member, home)
    except InvalidInput as error:
        failed = Failed(Failure("InvalidInput", str(error)))
        return msgspec.structs.replace(each, outcome=failed, follow=())
    return each
