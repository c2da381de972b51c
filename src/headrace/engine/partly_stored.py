"""What producers do where one of several stores has not answered, and others have stored jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from headrace.errors import HeadraceError, StoreUnavailable
from headrace.model.job import Inserted, Job, NewJob

T = TypeVar("T")


def by_store(group: Sequence[tuple[NewJob, T]]) -> list[list[tuple[NewJob, T]]]:
    """Return these in parts, each of which is for one store: sent by itself, the others go on. What
    they have stored already is not stored twice.
    """
    parts: dict[tuple[str, str | None], list[tuple[NewJob, T]]] = {}
    for each in group:
        parts.setdefault((each[0].queue, each[0].parent), []).append(each)
    return list(parts.values())


def tell_stored(error: HeadraceError, before: Sequence[Job]) -> None:
    """Add to an error which jobs of its call were stored before it."""
    if isinstance(error, StoreUnavailable):
        error.stored = (*(job.id for job in before), *error.stored)
    error.add_note(f"{len(before)} jobs of this call were stored before the error")


def fail(group: Sequence[tuple[NewJob, asyncio.Future[Inserted]]], error: BaseException) -> None:
    """Tell this error to all who wait for these."""
    for _, future in group:
        if not future.done():
            future.set_exception(error)
