"""Forms that were sent: one that comes twice is done once."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable

from headrace.server.dashboard.action import Done
from headrace.server.dashboard.page import Shown
from headrace.server.service import Service

# Part of every form that a browser with scripts sends: the same when it sends it again.
ONCE_FIELD = "once"
# How long a form that comes again is known. Browsers send again at once, people within seconds.
SECONDS = 60.0
MOST = 1_000

Result = Done | Shown


class SentForms:
    """The forms of the last minute and what came of them. One of each server."""

    def __init__(self, _: Service) -> None:
        self._sent: dict[Hashable, tuple[float, asyncio.Future[Result]]] = {}

    async def once(self, key: Hashable, act: Callable[[], Awaitable[Result]]) -> Result:
        """Return what comes of a form. One with the same key waits for the first, and gets the same
        result. What was refused is not remembered: it changed nothing, and may be tried again.
        """
        found = self._sent.get(key)
        if found is None or (found[0] <= time.monotonic() and found[1].done()):
            self._forget()
            task = asyncio.ensure_future(act())
            found = self._sent[key] = (time.monotonic() + SECONDS, task)
            task.add_done_callback(lambda done: self._ended(key, done))
        # A browser that goes away does not stop what it asked for, half-way.
        return await asyncio.shield(found[1])

    def _ended(self, key: Hashable, done: asyncio.Future[Result]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._sent.pop(key, None)

    def _forget(self) -> None:
        now = time.monotonic()
        for key, (until, task) in list(self._sent.items()):
            if not task.done() or (until > now and len(self._sent) <= MOST):
                break
            del self._sent[key]


def content(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return a digest of what a form says: if somebody has changed it, it is another one."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in fields:
        found.update(f"{len(name)} {name} {len(value)} {value}".encode("utf-8", "replace"))
    return found.digest()
