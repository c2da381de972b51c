"""Children of a job: how they ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from headrace.model.status import Status

OnFailure = Literal["fail", "collect"]

# The status of a child that is not there any more.
GONE = "gone"


class FailedChild(msgspec.Struct, frozen=True, kw_only=True):
    """A child that ended without a result. `index` is its place among those gathered; `status` is
    failed, timeout, cancelled, or gone if it was deleted.
    """

    job_id: str
    index: int
    task: str
    status: str
    error_type: str | None = None
    error: str | None = None

    @property
    def error_message(self) -> str | None:
        """The error, by the name that it has in JSON."""
        return self.error

    def __str__(self) -> str:
        return f"{self.job_id} ({self.task}) {self.status}: {self.error or 'no reason kept'}"


class EndedChild(msgspec.Struct, frozen=True, kw_only=True):
    """A child as its parent reads it. `result` is JSON, if it has completed."""

    job_id: str
    task: str
    status: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str | None = None
    error: str | None = None

    @property
    def completed(self) -> bool:
        """Whether there is a result."""
        return self.status == Status.COMPLETED.value
