"""Workers as engines and people see them."""

from __future__ import annotations

from datetime import datetime

import msgspec


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
    worker is lost to it. `cancelled` are its running jobs whose cancellation was requested. `lost`
    are those that are lost to it although it lives: of several stores one was away for too long.
    """

    alive: bool
    cancelled: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


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
