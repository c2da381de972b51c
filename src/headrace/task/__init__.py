"""Tasks: handlers with a policy, and the typed way to enqueue them."""

from headrace.task.app_like import JobSink
from headrace.task.registry import Registry
from headrace.task.signature import Signature
from headrace.task.stage import stage
from headrace.task.task import Task, TaskOptions

__all__ = [
    "JobSink",
    "Registry",
    "Signature",
    "Task",
    "TaskOptions",
    "stage",
]
