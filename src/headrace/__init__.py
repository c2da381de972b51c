"""Durable background jobs for Python services, on SQLite, PostgreSQL or Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.app import App
from headrace.clock import Clock
from headrace.config import Settings
from headrace.errors import (
    ArtifactNotFound,
    AuthenticationError,
    ChildFailed,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    HeadraceError,
    InvalidArguments,
    InvalidInput,
    InvalidName,
    InvalidSetting,
    InvalidWorkflow,
    JobConflict,
    JobFailed,
    JobNotFound,
    KeyInDoubt,
    LaneFull,
    LeaseLost,
    MigrationNeeded,
    MissingDriver,
    MissingEncryptionKey,
    NotRetryable,
    ParserError,
    PayloadTooLarge,
    RateLimited,
    ResultTimeout,
    RetryLater,
    SchemaTooNew,
    SealedValue,
    SealRefused,
    Snooze,
    StageTimedOut,
    StorageFull,
    StoreReplaced,
    StoreUnavailable,
    Suspended,
    UnknownAlertRule,
    UnknownDestination,
    UnknownEventType,
    UnknownSchedule,
    UnknownTask,
    UnknownWorkflow,
    ValidationError,
    WaitTimedOut,
    WorkerUnhealthy,
)
from headrace.model.artifact import Artifact, KeptFile
from headrace.model.durable.children import FailedChild
from headrace.model.durable.context import Context
from headrace.model.durable.transient_stages import GONE
from headrace.model.job import Job, JobFilter
from headrace.model.limits.breaker import Breaker
from headrace.model.limits.chunk import Chunk, ChunkJob
from headrace.model.limits.lane import Lane
from headrace.model.retry import BUGS, RetryPolicy
from headrace.model.status import Status
from headrace.task import Task, stage
from headrace.version import __version__

if TYPE_CHECKING:
    from headrace.bundles import Bundle
    from headrace.client import Client
    from headrace.orchestrator import JobOrchestrator

__all__ = [
    "BUGS",
    "GONE",
    "App",
    "Artifact",
    "ArtifactNotFound",
    "AuthenticationError",
    "Breaker",
    "Bundle",
    "ChildFailed",
    "Chunk",
    "ChunkJob",
    "Client",
    "Clock",
    "Context",
    "EngineError",
    "EngineRefused",
    "EngineUnavailable",
    "FailedChild",
    "HeadraceError",
    "InvalidArguments",
    "InvalidInput",
    "InvalidName",
    "InvalidSetting",
    "InvalidWorkflow",
    "Job",
    "JobConflict",
    "JobFailed",
    "JobFilter",
    "JobNotFound",
    "JobOrchestrator",
    "KeptFile",
    "KeyInDoubt",
    "Lane",
    "LaneFull",
    "LeaseLost",
    "MigrationNeeded",
    "MissingDriver",
    "MissingEncryptionKey",
    "NotRetryable",
    "ParserError",
    "PayloadTooLarge",
    "RateLimited",
    "ResultTimeout",
    "RetryLater",
    "RetryPolicy",
    "SchemaTooNew",
    "SealRefused",
    "SealedValue",
    "Settings",
    "Snooze",
    "StageTimedOut",
    "Status",
    "StorageFull",
    "StoreReplaced",
    "StoreUnavailable",
    "Suspended",
    "Task",
    "UnknownAlertRule",
    "UnknownDestination",
    "UnknownEventType",
    "UnknownSchedule",
    "UnknownTask",
    "UnknownWorkflow",
    "ValidationError",
    "WaitTimedOut",
    "WorkerUnhealthy",
    "__version__",
    "stage",
]


def __getattr__(name: str) -> Any:
    # A service that only enqueues does not pay for the imports of a worker or a client.
    if name == "JobOrchestrator":
        from headrace.orchestrator import JobOrchestrator  # noqa: PLC0415

        return JobOrchestrator
    if name == "Client":
        from headrace.client import Client  # noqa: PLC0415

        return Client
    if name == "Bundle":
        from headrace.bundles import Bundle  # noqa: PLC0415

        return Bundle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
