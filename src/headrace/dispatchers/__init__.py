"""Create jobs from schedules (cron) and from broker messages (events).

    from headrace.dispatchers import CronDispatcher, QueueDispatcher

Each needs an extra, `cron` or one of a broker, so each is imported only when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.dispatchers.cron.dispatcher import CronDispatcher
    from headrace.dispatchers.events.adapter import QueueAdapter
    from headrace.dispatchers.events.dispatcher import QueueDispatcher
    from headrace.model.schedules.schedule import Schedule

__all__ = ["CronDispatcher", "QueueAdapter", "QueueDispatcher", "Schedule"]

_PLACES = {
    "CronDispatcher": "headrace.dispatchers.cron.dispatcher",
    "QueueAdapter": "headrace.dispatchers.events.adapter",
    "QueueDispatcher": "headrace.dispatchers.events.dispatcher",
    "Schedule": "headrace.model.schedules.schedule",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
