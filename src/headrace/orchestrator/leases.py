"""Leases: renewed from a thread of their own, so that a blocked event loop loses no job."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]

from headrace.engine.base import Engine, LeaseKeeper
from headrace.errors import EngineUnavailable
from headrace.model.worker import Renewal, WorkerStats
from headrace.orchestrator.attempt import monotonic
from headrace.orchestrator.watch import BlockWatch
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.leases")

LONGEST_INTERVAL = 5.0
RETRY_INTERVAL = 1.0


class Leases:
    """Renews the worker's lease, and watches the loop between two renewals.

    `on_renewal` is called on the loop with each answer. `on_hang` is called on the thread, once,
    when the loop hangs for good: from then on nothing is renewed, so that others take over.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        lease_seconds: float,
        watch: BlockWatch,
        telemetry: Telemetry,
        running: Callable[[], int],
        healthy: Callable[[], bool],
        on_renewal: Callable[[str, Renewal], None],
        on_hang: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.lease_seconds = lease_seconds
        self.interval = min(lease_seconds / 5, LONGEST_INTERVAL)
        self.watch = watch
        self.telemetry = telemetry
        self.hung = False
        self.renewed_at = monotonic()
        self._loop = loop
        self._running = running
        self._healthy = healthy
        self._on_renewal = on_renewal
        self._on_hang = on_hang
        self._worker_id: str | None = None
        self._keeper: LeaseKeeper | None = None
        self._keeper_of: str | None = None
        self._next = 0.0
        self._prod = threading.Event()
        self._stopping = False
        self._failing = False
        self._process = psutil.Process()
        self._ended = loop.create_future()
        self._thread = threading.Thread(target=self._main, name="headrace-lease", daemon=True)

    @property
    def healthy(self) -> bool:
        """Whether the last renewal arrived."""
        return not (self._failing or self.hung)

    def start(self) -> None:
        """Begin to watch the loop. Renewals begin with `keep`."""
        self._process.cpu_percent(None)
        self._thread.start()

    def keep(self, worker_id: str) -> None:
        """Keep the lease of this worker from now on; it has just been registered."""
        self.renewed_at = monotonic()
        self._next = self.renewed_at + self.interval
        self._worker_id = worker_id
        self._prod.set()

    def renew_now(self) -> None:
        """Do not wait for the next time: something suggests that the lease is lost."""
        self._next = 0.0
        self._prod.set()

    async def stop(self, patience: float = 5.0) -> None:
        """End the thread. A renewal that hangs is left behind."""
        self._stopping = True
        self._prod.set()
        if self._thread.is_alive():
            await asyncio.wait({self._ended}, timeout=patience)

    def _main(self) -> None:
        try:
            while not self._stopping:
                now = monotonic()
                pause = self.watch.block_seconds / 2
                if self._worker_id is not None and not self.hung:
                    pause = min(pause, max(self._next - now, 0.0))
                self._prod.wait(pause)
                self._prod.clear()
                self._round()
        except RuntimeError:
            # The loop was closed under this thread: there is nothing left to renew for.
            if not self._loop.is_closed():
                raise
        finally:
            self._close_keeper()
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_resolve, self._ended)

    def _round(self) -> None:
        if self._stopping:
            return
        if self.watch.look():
            if not self.hung:
                self._hang()
            return
        if self.hung:
            # It came back after all; whether the lease is still good, the engine will say.
            self.hung = False
            self._next = 0.0
            log.warning("The event loop goes on; the worker asks for its lease again")
        worker_id = self._worker_id
        if worker_id is not None and monotonic() >= self._next:
            self._renew(worker_id)

    def _renew(self, worker_id: str) -> None:
        self.telemetry.memory_bytes = self._process.memory_info().rss
        self.telemetry.cpu_percent = self._process.cpu_percent(None)
        stats = WorkerStats(
            running=self._running(),
            memory_bytes=self.telemetry.memory_bytes,
            cpu_percent=self.telemetry.cpu_percent,
            healthy=self._healthy(),
        )
        began = monotonic()
        try:
            if self._keeper is None or self._keeper_of != worker_id:
                self._close_keeper()
                self._keeper = self.engine.keeper(worker_id, self.lease_seconds)
                self._keeper_of = worker_id
            renewal = self._keeper.renew(stats)
        except Exception as error:  # the thread must outlive whatever a driver raises
            self._failed(error)
            return
        self.telemetry.renewals += 1
        if self._failing:
            log.warning("The lease is renewed again")
            self._failing = False
        self._next = monotonic() + self.interval
        if renewal.alive:
            self.renewed_at = began
        elif self._worker_id == worker_id:
            self._worker_id = None  # until `keep` is called with a new one
        self._loop.call_soon_threadsafe(self._on_renewal, worker_id, renewal)

    def _failed(self, error: Exception) -> None:
        self.telemetry.lease_failures += 1
        self._next = monotonic() + min(self.interval, RETRY_INTERVAL)
        self._close_keeper()
        if not self._failing:
            self._failing = True
            log.error(
                "The lease could not be renewed (%s: %s); trying again every %g s",
                type(error).__name__,
                error,
                min(self.interval, RETRY_INTERVAL),
                exc_info=None if isinstance(error, EngineUnavailable) else error,
            )

    def _hang(self) -> None:
        self.hung = True
        log.critical(
            "The event loop hangs in a job that is past its time by more than the grace of %g s; "
            "the lease is given up, so that other workers take over",
            self.watch.grace_seconds,
        )
        self._on_hang()

    def _close_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            try:
                keeper.close()
            except Exception as error:  # a broken connection is gone anyway
                log.debug("Closing the lease connection: %s", error)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
