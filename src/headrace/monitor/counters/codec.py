"""Counters as they are stored."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.monitor.series.records import Values, histogram, values
from headrace.telemetry import TaskCounters, Telemetry

COUNTERS = (
    "claimed",
    "released",
    "refused",
    "exchange_failures",
    "renewals",
    "lease_failures",
    "leases_lost",
    "blocks",
    "block_seconds",
    "listening",
)
# Those that only ever grow.
CUMULATIVE = COUNTERS[:-1]


class CountedTask(msgspec.Struct):
    """A task in a queue."""

    task: str
    queue: str
    outcomes: dict[str, int]
    wait: Values
    run: Values


class Counted(msgspec.Struct, omit_defaults=True):
    """What was counted. `contains` names records that were added to this one, and when: they must
    not be counted again. One that is `closed` is not changed any more: its writer begins another.
    """

    tasks: list[CountedTask]  # or each as it is encoded
    exchange: Values
    counters: dict[str, float]
    contains: dict[str, float] = {}
    closed: bool = False

    @property
    def telemetry(self) -> Telemetry:
        """The counters. Raises `ValueError` if they have other buckets than ours."""
        telemetry = Telemetry(exchange_seconds=histogram(self.exchange))
        for name in COUNTERS:
            setattr(telemetry, name, self.counters.get(name, 0))
        for task in self.tasks:
            others = dict(task.outcomes)
            completed = others.pop("completed", 0)
            wait, run = histogram(task.wait), histogram(task.run)
            made = TaskCounters(task.task, task.queue, completed, others, wait, run)
            telemetry.tasks[task.task, task.queue] = made
        return telemetry


_decoder = msgspec.json.Decoder(Counted)


def counted_task(counters: TaskCounters) -> CountedTask:
    """Return a task in a queue as it is stored."""
    wait, run = values(counters.wait), values(counters.run)
    return CountedTask(counters.task, counters.queue, counters.outcomes(), wait, run)


def counted(telemetry: Telemetry, tasks: list[Any] | None = None) -> Counted:
    """Return counters as they are stored."""
    if tasks is None:
        tasks = [counted_task(each) for each in telemetry.tasks.values()]
    counters = {name: float(getattr(telemetry, name)) for name in COUNTERS}
    return Counted(tasks, values(telemetry.exchange_seconds), counters)


def read_counted(body: bytes) -> Counted | None:
    """Return what is stored; None if it is in the form of another version."""
    try:
        found = _decoder.decode(body)
        _ = found.telemetry
    except (msgspec.DecodeError, ValueError):
        return None
    return found


def decode_counted(body: bytes) -> Telemetry | None:
    """Return the counters that are stored; None if they are in the form of another version."""
    try:
        return _decoder.decode(body).telemetry
    except (msgspec.DecodeError, ValueError):
        return None
