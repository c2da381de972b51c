"""What all routes of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from headrace.admin.keys import Key
from headrace.app import App
from headrace.errors import ResultTimeout
from headrace.monitor.batched_get import JobReader
from headrace.monitor.changes import ChangeWatch
from headrace.monitor.snapshot import Snapshots
from headrace.monitor.subscribers import Follower
from headrace.server.auth.audit import AuditLog
from headrace.server.auth.keys import Keyring
from headrace.server.auth.redact import Redactor
from headrace.server.http.body import SLACK, Bucket
from headrace.server.responses import Answers

T = TypeVar("T")

MEBIBYTE = 1_048_576


class Service:
    """One server over one App."""

    def __init__(
        self,
        app: App,
        *,
        redact: Sequence[str],
        rate: float,
        upload_limit: int,
        user_argument: str | None,
        most_streams: int,
    ) -> None:
        self.app = app
        self.keys = Keyring(app)
        self.answers = Answers(Redactor(redact))
        self.audit = AuditLog(app)
        self.changes = ChangeWatch(app, self.answers.data)
        self.snapshots = Snapshots(app)
        self.reader = JobReader(app)
        self.upload_limit = upload_limit
        self.user_argument = user_argument
        self.most_streams = most_streams
        self.followers: set[Follower] = set()
        self._held: set[asyncio.Future[Any]] = set()
        self._leaving = False
        self._rate = rate
        self._buckets: dict[str, Bucket] = {}

    @property
    def body_limit(self) -> int:
        """How many bytes a request may have."""
        return self.app.payload_limit + SLACK

    @property
    def batch_limit(self) -> int:
        """How many bytes a batch may have. What fits is stored in one transaction."""
        return max(self.body_limit, 4 * MEBIBYTE)

    def bucket(self, key: Key) -> Bucket:
        """How often this key may still ask."""
        rate = key.rate or self._rate
        bucket = self._buckets.get(key.id)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[key.id] = Bucket(rate)
        return bucket

    async def hold(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait for something that may take long. Raises `ResultTimeout` when the server stops."""
        if self._leaving:
            waiting.close()
            raise ResultTimeout("the server stops")
        task = asyncio.ensure_future(waiting)
        self._held.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and (current is None or not current.cancelling()):
                raise ResultTimeout("the server stops") from None
            raise
        finally:
            task.cancel()
            self._held.discard(task)

    def let_go(self) -> None:
        """Let every open stream and every long wait come to its end, so that a server can stop."""
        self._leaving = True
        for follower in self.followers:
            follower.end()
        for task in self._held:
            task.cancel()

    async def close(self) -> None:
        """Write what is not written yet, and stop looking for changes."""
        self.let_go()
        await self.changes.close()
        await self.audit.close()


class ServicePerLoop:
    """Tasks and events belong to one event loop; a program may run several in turn."""

    def __init__(self, make: Callable[[], Service]) -> None:
        self._make = make
        self._made: Service | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> Service:
        """The one for the loop that runs now."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._loop is not loop:
            self._made, self._loop = self._make(), loop
        return self._made


def service_of(request: Request) -> Service:
    """The server that a request came to."""
    service: Service = request.app.state.headrace.get()
    return service
