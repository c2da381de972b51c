"""Workers as engines and people see them."""

from __future__ import annotations

from datetime import datetime

import msgspec

# A look at lapsed leases costs little, but every worker looks.
_LONGEST_SWEEP_PAUSE = 5.0
# Pauses vary by a fifth, so that not all workers look at once (`loops.loop.around`).
_LONGEST_VARIATION = 1.2


def sweep_pause(lease_seconds: float) -> float:
    """Return about how long a worker waits between two looks for lapsed leases."""
    return min(lease_seconds / 4, _LONGEST_SWEEP_PAUSE)


def renewal_seconds(lease_seconds: float) -> float:
    """Return how long a renewal is valid: so that `lease_seconds` after the last one a sweep has
    seen that it has lapsed.
    """
    return lease_seconds - _LONGEST_VARIATION * sweep_pause(lease_seconds)


class WorkerInfo(msgspec.Struct, kw_only=True):
    """A worker that introduces itself. `queues` empty means all. `id` is new at each start.

    `tasks` are the names of the tasks that it knows; None: all, whatever their name.
    """

    id: str
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...] = ()
    slots: int = 10
    tasks: tuple[str, ...] | None = None


class WorkerStats(msgspec.Struct, kw_only=True, frozen=True):
    """What a heartbeat tells besides "alive"."""

    running: int = 0
    memory_bytes: int = 0
    cpu_percent: float = 0.0
    healthy: bool = True


class Renewal(msgspec.Struct, frozen=True):
    """The reply to a heartbeat.

    `alive` is False when the lease had lapsed or another process took the name: every job of this
    worker is lost to it. `cancelled` are its running jobs whose cancellation was requested.
    """

    alive: bool
    cancelled: tuple[str, ...] = ()


class Worker(msgspec.Struct, kw_only=True):
    """A worker as people see it. `tasks` is None if it takes all, or if the store does not say.

    `schema_version` is the newest that its program knows; None if that program is too old to say.
    """

    id: str
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    running: int
    memory_bytes: int
    cpu_percent: float
    healthy: bool
    alive: bool
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    tasks: tuple[str, ...] | None = None
    schema_version: int | None = None
