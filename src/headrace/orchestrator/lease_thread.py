"""The lease thread: renews the worker's lease, so that a blocked event loop loses no job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]

from headrace.engine.base import Engine, LeaseKeeper
from headrace.errors import EngineUnavailable, WorkerUnhealthy
from headrace.loops.loop import spread
from headrace.model.lease import renewal_pause
from headrace.model.worker import Renewal, WorkerStats
from headrace.orchestrator.running.attempt import monotonic
from headrace.orchestrator.running.loop_monitor import LoopBlockMonitor
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.leases")

RETRY_INTERVAL = 1.0


class LeaseThread:
    """Renews the worker's lease, and monitors the event loop between two renewals.

    `on_renewal` is called on the loop with each reply. `on_hang` is called on the thread, once,
    when the loop hangs for good: from then on nothing is renewed, so that others take over.
    `on_death` is called on the loop if the thread ends before `stop`; no error of a round ends it.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        lease_seconds: float,
        monitor: LoopBlockMonitor,
        telemetry: Telemetry,
        running: Callable[[], int],
        healthy: Callable[[], bool],
        on_renewal: Callable[[str, Renewal], None],
        on_hang: Callable[[], None],
        on_death: Callable[[WorkerUnhealthy], None],
    ) -> None:
        self.engine = engine
        self.lease_seconds = lease_seconds
        self.interval = renewal_pause(lease_seconds)
        self.monitor = monitor
        self.telemetry = telemetry
        self.hung = False
        self.renewed_at = monotonic()
        self._loop = loop
        self._running = running
        self._healthy = healthy
        self._on_renewal = on_renewal
        self._on_hang = on_hang
        self._on_death = on_death
        self._worker_id: str | None = None
        self._keeper: LeaseKeeper | None = None
        self._keeper_of: str | None = None
        self._next = 0.0
        self._wakeup = threading.Event()
        self._stopping = False
        self._failing = False
        self._process = psutil.Process()
        self._ended = loop.create_future()
        self._thread = threading.Thread(target=self._main, name="headrace-lease", daemon=True)

    @property
    def alive(self) -> bool:
        """Return whether it renews. A thread that has said that it ends may still be seen alive."""
        return self._thread.is_alive() and not self._ended.done()

    def start(self) -> None:
        """Begin to monitor the loop. Renewals begin with `renew_for`."""
        self._process.cpu_percent(None)
        self._thread.start()

    def renew_for(self, worker_id: str, since: float) -> None:
        """Renew the lease of this worker from now on. The registration was sent at `since`, and the
        engine counts from some moment between then and now.
        """
        self.renewed_at = since
        self._next = since + self.interval
        self._worker_id = worker_id
        self._wakeup.set()

    def let_lapse(self) -> None:
        """Stop renewing, so that others take over."""
        self._worker_id = None

    def renew_now(self) -> None:
        """Renew at once: the lease may be lost."""
        self._next = 0.0
        self._wakeup.set()

    async def stop(self, patience: float = 5.0) -> None:
        """End the thread. A renewal that hangs is abandoned."""
        self._stopping = True
        self._wakeup.set()
        if self._thread.is_alive():
            await asyncio.wait({self._ended}, timeout=patience)

    def _main(self) -> None:
        fatal: BaseException | None = None
        try:
            while not self._stopping and not self._loop.is_closed():
                now = monotonic()
                pause = self.monitor.block_seconds / 2
                if self._worker_id is not None and not self.hung:
                    pause = min(pause, max(self._next - now, 0.0))
                self._wakeup.wait(pause)
                self._wakeup.clear()
                try:
                    self._round()
                except Exception as error:  # the thread must survive every error
                    if not self._loop.is_closed():  # then there is nothing left to renew for
                        self._failed(error)
        except BaseException as error:  # not even SystemExit ends it silently
            fatal = error
        finally:
            self._close_keeper()
            if not self._loop.is_closed():
                with contextlib.suppress(RuntimeError):  # it has been closed at this moment
                    self._loop.call_soon_threadsafe(self._over, fatal)

    def _over(self, fatal: BaseException | None) -> None:
        """On the loop: the thread has ended."""
        if not self._ended.done():
            self._ended.set_result(None)
        if not self._stopping:
            what = f"{type(fatal).__name__}: {fatal}"
            self._on_death(WorkerUnhealthy(f"the thread that renews the lease ended: {what}"))

    def _round(self) -> None:
        if self._stopping:
            return
        if self._hangs():
            if not self.hung:
                self._hang()
            return
        if self.hung:
            # It recovered; the next renewal shows whether the lease is still valid.
            self.hung = False
            self._next = 0.0
            log.warning("The event loop has recovered; renewing the lease again")
        worker_id = self._worker_id
        if worker_id is not None and monotonic() >= self._next:
            self._renew(worker_id)

    def _hangs(self) -> bool:
        """Return whether the loop hangs for good. A check that fails must not cost the lease."""
        try:
            return self.monitor.check()
        except Exception as error:
            if self._loop.is_closed():
                raise
            log.warning("The event loop could not be checked", exc_info=error)
            return False

    def _stats(self) -> WorkerStats:
        telemetry = self.telemetry
        try:
            telemetry.memory_bytes = self._process.memory_info().rss
            telemetry.cpu_percent = self._process.cpu_percent(None)
        except Exception as error:  # a job has opened every file there may be, for example
            log.debug("Memory and CPU load could not be read: %s", error)
        return WorkerStats(
            running=self._running(),
            memory_bytes=telemetry.memory_bytes,
            cpu_percent=telemetry.cpu_percent,
            healthy=self._healthy(),
        )

    def _renew(self, worker_id: str) -> None:
        stats = self._stats()
        began = monotonic()
        try:
            if self._keeper is None or self._keeper_of != worker_id:
                self._close_keeper()
                self._keeper = self.engine.keeper(worker_id, self.lease_seconds)
                self._keeper_of = worker_id
            renewal = self._keeper.renew(stats)
        except Exception as error:  # a driver may raise anything
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
            self._worker_id = None  # until `renew_for` is called with a new one
        self._loop.call_soon_threadsafe(self._on_renewal, worker_id, renewal)

    def _failed(self, error: Exception) -> None:
        self.telemetry.lease_failures += 1
        self._next = monotonic() + spread(min(self.interval, RETRY_INTERVAL))
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
            "the lease is released, so that other workers take over",
            self.monitor.grace_seconds,
        )
        self._on_hang()

    def _close_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            try:
                keeper.close()
            except Exception as error:  # a broken connection is gone anyway
                log.debug("Closing the lease connection: %s", error)
