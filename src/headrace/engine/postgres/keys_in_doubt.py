"""Storing jobs whose keys may be taken by a transaction that is still open."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import TypeVar

import asyncpg

from headrace.engine.postgres.connection.connection import Link
from headrace.engine.postgres.connection.store import Store
from headrace.errors import EngineUnavailable, KeyInDoubt
from headrace.model.job import NewJob

# How long a call waits until it is known whether a key is taken, and how often it asks.
LONGEST_DOUBT = 30.0
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25

T = TypeVar("T")


class KeysInDoubt(Store):
    """Waiting for keys.

    A caller's transaction that has stored a job with a key stays open as long as the caller likes,
    and only its end tells whether that key is taken. A call that stores a job with the same key
    waits for that here and not on the server, where it would hold up all verbs that share its
    connection, perhaps those that the caller is waiting for: the server gives up at once (see
    functions/insert/own_keys_soon.sql), and now and then it is asked again, by a connection for
    just that.
    """

    async def _store_by(
        self,
        link: Link,
        jobs: Sequence[NewJob],
        store: Callable[[Link], Awaitable[T]],
        *,
        wait: bool,
    ) -> T:
        """Store jobs by `store`. If a key may be taken or not, raise `KeyInDoubt`, at once or after
        waiting for it.
        """
        try:
            if self._in_doubt and not self._in_doubt.keys().isdisjoint(keys_of(jobs)):
                raise self._doubt(jobs)
            return await self._store_now(link, jobs, store)
        except KeyInDoubt:
            if not wait:
                raise
        return await self._store_when_known(jobs, store)

    async def _store_now(
        self, link: Link, jobs: Sequence[NewJob], store: Callable[[Link], Awaitable[T]]
    ) -> T:
        try:
            return await store(link)
        except EngineUnavailable as error:
            if isinstance(error.__cause__, asyncpg.LockNotAvailableError) and keys_of(jobs):
                raise self._doubt(jobs) from error
            raise

    async def _store_when_known(
        self, jobs: Sequence[NewJob], store: Callable[[Link], Awaitable[T]]
    ) -> T:
        """Ask now and then. Nothing is locked meanwhile, here or on the server."""
        keys, until, pause = keys_of(jobs), monotonic() + LONGEST_DOUBT, FIRST_PAUSE
        for key in keys:
            self._in_doubt[key] = self._in_doubt.get(key, 0) + 1
        try:
            while True:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - a jitter
                try:
                    return await self._store_now(self._doubts, jobs, store)
                except KeyInDoubt:
                    if monotonic() >= until:
                        raise
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            for key in keys:
                self._in_doubt[key] -= 1
                if not self._in_doubt[key]:
                    del self._in_doubt[key]

    def _doubt(self, jobs: Sequence[NewJob]) -> KeyInDoubt:
        keys = keys_of(jobs)
        task, key = min(keys)
        which = f"the key {key!r} of task {task!r}"
        if len(keys) > 1:
            which = f"one of {len(keys)} keys, such as {key!r} of task {task!r},"
        return KeyInDoubt(
            f"PostgreSQL at {self.address.shown}: {which} belongs to a job of a transaction that "
            "is still open, so whether it is taken is not known. Nothing was stored. End that "
            "transaction (pg_stat_activity shows it), or enqueue again later."
        )


def keys_of(jobs: Iterable[NewJob]) -> set[tuple[str, str]]:
    """Return the keys of jobs, each with its task."""
    return {(job.task, job.key) for job in jobs if job.key is not None}
