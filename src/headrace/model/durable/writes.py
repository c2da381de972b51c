"""What a running attempt writes before it ends: progress, stages, files that it keeps."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """Something kept with a job by kind and name, e.g. ("stage", "crawling"). `body` is JSON."""

    kind: str
    name: str
    body: bytes


class StoredEntry(msgspec.Struct, frozen=True):
    """An entry as it was kept, with the attempt's token and the time."""

    kind: str
    name: str
    body: bytes
    token: int
    at: datetime


class Note(msgspec.Struct, frozen=True):
    """One write of a running attempt. None leaves a field as it is; entries replace by name."""

    job_id: str
    token: int
    stage: str | None = None
    progress: float | None = None
    message: str | None = None
    entries: tuple[Entry, ...] = ()
