"""New jobs as the columns, or the JSON, that the insert functions take."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from headrace.model.job import NewJob
from headrace.model.times import kept_delay, kept_time

T = TypeVar("T")

# What stands for "no timeout" where a column is sent as one element.
NO_TIMEOUT = -1.0


_like = attrgetter(
    *("task", "queue", "priority", "delay", "run_at", "width", "hold", "max_attempts", "timeout"),
    *("on_crash", "source", "lane", "parent"),
)


def is_plain(job: NewJob) -> bool:
    """Whether the job has no key, lane and parent: one insert and it is stored."""
    return job.key is None and job.lane is None and job.parent is None


def alike(jobs: Sequence[NewJob]) -> tuple[object, ...] | None:
    """What the jobs share if they differ in id, arguments, key and meta only and have no lane or
    parent; else None. All of them have a key, or none.
    """
    first = jobs[0]
    if first.lane is not None or first.parent is not None:
        return None
    if len(jobs) > 1 and len(set(map(_like, jobs))) > 1:
        return None
    if len({job.key is None for job in jobs}) > 1:
        return None
    return shared(first)


def shared(job: NewJob) -> tuple[object, ...]:
    """The values that such jobs have in common."""
    return (
        job.task,
        job.queue,
        job.priority,
        kept_delay(job.delay),
        None if job.run_at is None else kept_time(job.run_at),
        job.width,
        job.hold,
        job.max_attempts,
        job.timeout,
        job.on_crash == "fail",
        job.source,
    )


def differing(jobs: Sequence[NewJob]) -> tuple[list[object] | None, ...]:
    """The columns in which such jobs differ."""
    return (
        [job.id for job in jobs],
        [job.args for job in jobs],
        _present([job.key for job in jobs]),
        _present([job.meta for job in jobs]),
    )


def columns(jobs: Sequence[NewJob]) -> tuple[list[object] | None, ...]:
    """One list per column. A column whose values are all the same is one element long; one that
    no job has a value for is None.
    """
    parents = _present([job.parent for job in jobs])
    return (
        [job.id for job in jobs],
        _folded([job.args for job in jobs]),
        _folded([job.task for job in jobs]),
        _folded([job.queue for job in jobs]),
        _folded([job.priority for job in jobs]),
        _folded([kept_delay(job.delay) for job in jobs]),
        _present([_time(job.run_at) for job in jobs]),
        _present([job.key for job in jobs]),
        _present([job.lane for job in jobs]),
        _folded([job.width for job in jobs]),
        _folded([job.hold for job in jobs]),
        _folded([job.max_attempts for job in jobs]),
        _folded([NO_TIMEOUT if job.timeout is None else job.timeout for job in jobs]),
        _folded([job.on_crash == "fail" for job in jobs]),
        _folded([job.source for job in jobs]),
        _present([job.meta for job in jobs]),
        parents,
        None if parents is None else _present([job.group for job in jobs]),
    )


def as_json(jobs: Sequence[NewJob]) -> str:
    """The same as one text, which every driver passes on unchanged. Bytes become base64."""
    return msgspec.json.encode(
        [
            {
                "id": job.id,
                "args": job.args,
                "task": job.task,
                "queue": job.queue,
                "priority": job.priority,
                "delay": kept_delay(job.delay),
                "run_at_epoch": _time(job.run_at),
                "key": job.key,
                "lane": job.lane,
                "width": job.width,
                "hold": job.hold,
                "max_attempts": job.max_attempts,
                "timeout": job.timeout,
                "fail_on_crash": job.on_crash == "fail",
                "source": job.source,
                "meta": job.meta,
                "parent": job.parent,
                "child_group": job.group,
            }
            for job in jobs
        ]
    ).decode()


def _time(run_at: float | None) -> float | None:
    return None if run_at is None else kept_time(run_at)


def _folded(values: list[T]) -> list[object]:
    return [values[0]] if values.count(values[0]) == len(values) else list(values)


def _present(values: list[T]) -> list[object] | None:
    return None if values.count(values[0]) == len(values) and values[0] is None else list(values)
