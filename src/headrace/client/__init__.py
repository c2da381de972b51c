"""A client over HTTP, with the verbs of an App, for programs that cannot reach the engine.

async with headrace.Client("https://jobs.example.com", api_key="…") as client:
    job = await client.enqueue("invoice.send", {"customer_id": 42})
    value = await client.result(job.id, timeout=30)
"""

from __future__ import annotations

from headrace.api_types.bulk import BulkAnswer, BulkView, MatchedError
from headrace.api_types.requests import JobRequest
from headrace.api_types.responses import (
    AuditEntry,
    AuditPage,
    DeadLetterPage,
    DeadLetterView,
    DispatcherView,
    KeyView,
    NewKey,
    Replayed,
    RunBegun,
    Running,
    RunningJob,
    RunningSummary,
    ScheduleRun,
    ScheduleTime,
    ScheduleTimes,
    ScheduleView,
    SkippedTimes,
    TaskView,
)
from headrace.client.client import Client
from headrace.client.errors import AccessDenied, NotFound, TooManyRequests, UnexpectedAnswer
from headrace.client.files import File
from headrace.client.job_codec import JobOptions
from headrace.client.sync import SyncClient
from headrace.model.artifact import Artifact

__all__ = [
    "AccessDenied",
    "Artifact",
    "AuditEntry",
    "AuditPage",
    "BulkAnswer",
    "BulkView",
    "Client",
    "DeadLetterPage",
    "DeadLetterView",
    "DispatcherView",
    "File",
    "JobOptions",
    "JobRequest",
    "KeyView",
    "MatchedError",
    "NewKey",
    "NotFound",
    "Replayed",
    "RunBegun",
    "Running",
    "RunningJob",
    "RunningSummary",
    "ScheduleRun",
    "ScheduleTime",
    "ScheduleTimes",
    "ScheduleView",
    "SkippedTimes",
    "SyncClient",
    "TaskView",
    "TooManyRequests",
    "UnexpectedAnswer",
]
