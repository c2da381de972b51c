"""Bulk actions: a preview, the answer, and an action that a server does in the background."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from headrace.api_types.job import JobBody
from headrace.api_types.requests import FilterRequest

BulkAction = Literal["cancel", "retry"]
BulkState = Literal["running", "stopped", "finished", "failed"]


class MatchedError(msgspec.Struct, kw_only=True):
    """How many jobs show an error. Without a fingerprint if that would tell hidden values."""

    error_type: str
    fingerprint: str | None = None
    count: int


class BulkAnswer(msgspec.Struct, kw_only=True):
    """How many jobs a bulk action matched and changed, and the ids of the first 100.

    The rest is for `dry_run`: jobs by task, queue and error, and the newest 20, without arguments
    and result. Not `complete`: more may match than were looked at. `cutoff` is for the action: with
    it, the action leaves alone what was made after the preview.
    """

    matched: int
    changed: int
    ids: list[str] = []
    complete: bool = True
    cutoff: datetime | None = None
    by_task: dict[str, int] = {}
    by_queue: dict[str, int] = {}
    by_error: list[MatchedError] = []
    samples: list[JobBody] = []


class BulkView(msgspec.Struct, kw_only=True):
    """A bulk action that a server does. `jobs` is the address of a list of what it is for."""

    id: str
    action: BulkAction
    filter: FilterRequest
    cutoff: datetime
    reason: str | None = None
    who: str
    made_at: datetime
    state: BulkState
    matched: int
    changed: int
    ids: list[str] = []
    finished_at: datetime | None = None
    error: str | None = None
    jobs: str = ""
