"""Changing a record that others may change at the same time: one rule for all records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.engine.base import Records
from headrace.errors import RecordConflict
from headrace.model.views import Record

T = TypeVar("T")

TRIES = 20


async def change_record(
    engine: Records,
    kind: str,
    key: str,
    change: Callable[[Record | None], tuple[T, bytes | None]],
    *,
    busy: str,
) -> T:
    """Write what `change` makes of a record as it is now; again if somebody else was first.

    `change` returns what the caller gets, and the new body; None: nothing is written. Raises
    `RecordConflict` with the words `busy` if others are first each time.
    """
    for _ in range(TRIES):
        record = await engine.record_get(kind, key)
        made, body = change(record)
        if body is None:
            return made
        version = 0 if record is None else record.version
        try:
            await engine.record_put(kind, key, body, version=version)
        except RecordConflict:
            continue
        return made
    raise RecordConflict(busy)
