"""What all routes of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from starlette.requests import Request

from headrace.admin.bulk_runner import BulkRunner
from headrace.app import App
from headrace.errors import ResultTimeout
from headrace.monitor.changes.watch import ChangeWatch
from headrace.monitor.findings.read import MEANWHILE_SECONDS
from headrace.monitor.findings.summary import Summaries
from headrace.monitor.metrics.store import StoreMetrics
from headrace.monitor.results import JobReader
from headrace.monitor.series.depths import DepthSampler
from headrace.monitor.series.read import SeriesReader
from headrace.monitor.snapshot import Snapshots
from headrace.server.auth.audit import AuditLog
from headrace.server.auth.bound_key_counts import own_depths
from headrace.server.auth.keys import Keyring, RateLimit
from headrace.server.expiry import ServerExpiry
from headrace.server.http.body_limits import body_limits
from headrace.server.responses import Answers
from headrace.task.redact import Redactor

T = TypeVar("T")


class Endable(Protocol):
    """A stream that is open."""

    def end(self) -> None:
        """End it."""


@runtime_checkable
class KeepsReads(Protocol):
    """A part that keeps what was read, for all who look."""

    def forget(self) -> None:
        """Read anew for the next who asks."""


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
        self.rate_limit = RateLimit(rate)
        shows = app.settings.show_sealed
        self.answers = Answers(Redactor(redact), app.sealing if shows else None)
        self.audit = AuditLog(app)
        self.bulk = BulkRunner(
            app,
            self.audit.background,
            seen=self.answers.seen,
            lease=app.settings.lease_seconds,
        )
        self.changes = ChangeWatch(app, self.answers.data)
        self.snapshots = Snapshots(app)
        self.metrics = StoreMetrics(app, self.snapshots)
        self.summaries = Summaries(
            app, self.snapshots, own=partial(own_depths, self), meanwhile=MEANWHILE_SECONDS
        )
        self.series = SeriesReader(app)
        self.depths = DepthSampler(app, self.snapshots)
        self.alerts = app.alert_loop()
        self.expiry = ServerExpiry(app)
        self.reader = JobReader(app)
        self.body_limits = body_limits(payload_limit=app.payload_limit, upload_limit=upload_limit)
        self.user_argument = user_argument
        self.most_streams = most_streams
        self.subscribers: set[Endable] = set()
        self._parts: dict[Any, Any] = {}
        self._long_polls: set[asyncio.Future[Any]] = set()
        self._stopping = False

    def part(self, kind: Callable[[Service], T]) -> T:
        """Return the one object of a kind that belongs to this service; make it at first."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        found: T = self._parts[kind]
        return found

    def forget_reads(self) -> None:
        """Read everything anew for the next who looks: somebody has changed something here, and
        must not be shown what was before.
        """
        self.summaries.forget()
        for part in self._parts.values():
            if isinstance(part, KeepsReads):
                part.forget()

    async def long_poll(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait for something that may take long. Raises `ResultTimeout` when the server stops."""
        if self._stopping:
            waiting.close()
            raise ResultTimeout("the server stops")
        task = asyncio.ensure_future(waiting)
        self._long_polls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and (current is None or not current.cancelling()):
                raise ResultTimeout("the server stops") from None
            raise
        finally:
            task.cancel()
            self._long_polls.discard(task)

    def begin_shutdown(self) -> None:
        """End every stream and every long poll, so that the server can stop."""
        self._stopping = True
        for subscriber in self.subscribers:
            subscriber.end()
        for task in self._long_polls:
            task.cancel()

    async def close(self) -> None:
        """Write what is pending, and stop watching for changes."""
        self.begin_shutdown()
        await self.bulk.stop()
        await self.depths.stop()
        await self.alerts.stop()
        await self.expiry.stop()
        await self.changes.close()
        await self.audit.close()


class ServicePerLoop:
    """A Service for each event loop: a program may run several loops in turn."""

    def __init__(self, make: Callable[[], Service]) -> None:
        self._make = make
        self._made: Service | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> Service:
        """Return the one for the running loop."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._loop is not loop:
            self._made, self._loop = self._make(), loop
        return self._made


def service_of(request: Request) -> Service:
    """Return the service of a request."""
    # Not request.app: a request to a bundle has another App there.
    service: Service = request.scope["app"].state.headrace.get()
    return service
