"""What a server answers about everything that is not a single job."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace.model.artifact import Artifact
from headrace.model.views import Delivery, LaneView, QueueView
from headrace.model.worker import Worker


class RunningJob(msgspec.Struct, kw_only=True):
    """A job that runs now. `platform` is its queue."""

    platform: str
    job_id: str
    workflow_id: str | None = None
    started_at: datetime | None = None
    elapsed_seconds: float = 0.0


class RunningSummary(msgspec.Struct, kw_only=True):
    """How many run, and how many wait."""

    running_count: int
    queued_count: int


class Running(msgspec.Struct, kw_only=True):
    """What runs now, and how many jobs wait in each queue."""

    running: list[RunningJob]
    queued: dict[str, int]
    summary: RunningSummary


class RunningAnswer(msgspec.Struct, kw_only=True):
    """The same, as it travels."""

    data: Running
    success: bool = True


class BulkAnswer(msgspec.Struct, kw_only=True):
    """How many jobs a bulk change matched and changed, and the first of their ids."""

    matched: int
    changed: int
    ids: list[str] = []


class TaskView(msgspec.Struct, kw_only=True):
    """A task that the server knows: its arguments as JSON schema, and its policy."""

    name: str
    description: str | None = None
    arguments: dict[str, Any] = {}
    policy: dict[str, Any] = {}


class Entry(msgspec.Struct, kw_only=True):
    """Something kept with a job, as it travels."""

    kind: str
    name: str
    body: msgspec.Raw
    at: datetime
    token: int = 0


class EntryList(msgspec.Struct):
    """What is kept with a job, as it travels."""

    entries: list[Entry]


class ArtifactList(msgspec.Struct):
    """Files, as they travel."""

    artifacts: list[Artifact]


class ResultAnswer(msgspec.Struct):
    """What a handler returned, as it travels."""

    result: Any


class DeliveryAnswer(msgspec.Struct):
    """What became of an event for a job."""

    delivery: Delivery


class Reasons(msgspec.Struct):
    """Why a job is not running."""

    reasons: list[str]


class QueueList(msgspec.Struct):
    """Queues, as they travel."""

    queues: list[QueueView]


class LaneList(msgspec.Struct):
    """Lanes, as they travel."""

    lanes: list[LaneView]


class WorkerList(msgspec.Struct):
    """Workers, as they travel."""

    workers: list[Worker]


class TaskList(msgspec.Struct):
    """Tasks, as they travel."""

    tasks: list[TaskView]
