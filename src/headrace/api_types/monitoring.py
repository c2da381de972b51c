"""Bodies of responses that tell how things are: the summary, and errors in groups."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.api_types.responses import DispatcherView
from headrace.model.views import Finding, LaneView, QueueView
from headrace.model.worker import Worker


class Summary(msgspec.Struct, kw_only=True):
    """How things are at one moment, and what is wrong, errors first. `lanes` are those for which
    the most jobs wait. Dispatchers are shown to those who may see all queues.
    """

    at: datetime
    findings: list[Finding]
    queues: list[QueueView]
    workers: list[Worker]
    lanes: list[LaneView]
    dispatchers: list[DispatcherView]


class ErrorGroup(msgspec.Struct, kw_only=True):
    """Failed jobs of one task whose errors have one type and differ only in ids, numbers and names.

    `message` is that of the newest, `normalised` what all of them share. `minutes` counts failures
    by minute of the end, from `ErrorGroups.first_minute` on. `job_ids` are some of the newest.
    With `hidden` part of the message is not shown, and `fingerprint` is of what is shown: the jobs
    cannot be found by it.
    """

    task: str
    error_type: str
    fingerprint: str
    count: int
    message: str
    normalised: str
    first_at: datetime
    last_at: datetime
    queues: list[str]
    job_ids: list[str]
    minutes: list[int]
    hidden: bool = False


class ErrorGroups(msgspec.Struct, kw_only=True):
    """The newest failed jobs in groups, the largest first; the smallest beyond 200 are counted as
    others. `looked_at` failures were grouped; not `complete`: there are older ones, and counts are
    of the newest only. Each point of `minutes` is of `minute_seconds`. Jobs that were retried and
    have not failed again are not among them: what they failed with is not kept where it is found.
    """

    groups: list[ErrorGroup]
    other_groups: int = 0
    other_failures: int = 0
    looked_at: int
    complete: bool
    first_minute: datetime | None = None
    minute_seconds: int = 60
