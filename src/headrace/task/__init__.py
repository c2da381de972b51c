"""Tasks: handlers with a policy, and the typed door to enqueue them."""

from headrace.task.registry import Registry
from headrace.task.signature import Signature
from headrace.task.stage import stage
from headrace.task.task import Door, Task, TaskOptions

__all__ = [
    "Door",
    "Registry",
    "Signature",
    "Task",
    "TaskOptions",
    "stage",
]
