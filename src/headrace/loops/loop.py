"""The base of every background loop: start, tick, wait, wake, stop.

A loop never ends by itself: after an error it logs, backs off and tries again, and `healthy` shows
it.
"""

from __future__ import annotations

import asyncio
import logging
import random

from headrace.errors import EngineError, EngineUnavailable

log = logging.getLogger("headrace.loops.loop")

# One error may be chance; this many in a row are reported as unhealthy.
UNHEALTHY_AFTER = 3
LONGEST_BACKOFF = 30.0
# … but without a lease whose renewal ends the backoff, this is the longest.
LONGEST_ALONE = 5.0


def backoff(failures: int) -> float:
    """Return the seconds to wait after this many failures in a row: 1, 2, 4 … at most 30."""
    return min(2.0 ** min(max(failures - 1, 0), 16), LONGEST_BACKOFF)


def spread(seconds: float) -> float:
    """Return a random part, at least half: workers must not all retry at the same moment."""
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - not for secrets


def around(seconds: float) -> float:
    """Return a random time near this one: many workers must not all ask at once."""
    return seconds * random.uniform(0.8, 1.2)  # noqa: S311 - not for secrets


def failing(what: str, failures: int, error: BaseException | None) -> str:
    """Return a sentence about something that fails again and again."""
    kind = "" if error is None else f" ({type(error).__name__})"
    return f"{what} failed {failures} times in a row{kind}; the log says why"


class Loop:
    """Calls `tick` again and again, each time after the seconds that the last call returned."""

    name = "loop"
    # Whether a worker stops it only after its last attempt has ended.
    stops_last = False

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.failures = 0
        self.last_error: BaseException | None = None
        self._last_logged: str | None = None
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None
        self._watching: list[asyncio.Future[None]] = []
        self._retry = False
        self._waiting_out: set[asyncio.Future[None]] = set()
        self._stopping = False
        self._parked = asyncio.Event()

    async def tick(self) -> float | None:
        """Do one round. Return the seconds until the next; None waits for `wake`."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """Called after a round raised. If this raises, the loop ends with that error."""

    @property
    def running(self) -> bool:
        """Return whether the loop has been started and has not ended."""
        return self.task is not None and not self.task.done()

    @property
    def cancelled(self) -> bool:
        """Return whether its task is being cancelled, by `stop` or because the program ends."""
        return self.task is not None and self.task.cancelling() > 0

    @property
    def healthy(self) -> bool:
        """Return False while rounds fail again and again, or after the loop gave up."""
        if self.task is not None and self.task.done() and not self._stopping:
            return False
        return self.failures < UNHEALTHY_AFTER

    @property
    def stopping(self) -> bool:
        """Return whether `stop` was called and it has not been started again."""
        return self._stopping

    @property
    def trouble(self) -> str | None:
        """Return what is wrong while it is not healthy; None otherwise. The error itself is in the
        log: it may name hosts, and this is shown to everybody.
        """
        if self.healthy:
            return None
        what = "the engine" if isinstance(self.last_error, EngineError) else self.name
        return failing(what, self.failures, self.last_error)

    def start(self) -> asyncio.Task[None]:
        """Begin. The first round runs soon."""
        if self.task is not None and not self.task.done():
            return self.task
        self._stopping = False
        self._woken = False
        self._parked = asyncio.Event()
        self.task = asyncio.create_task(self._run(), name=f"headrace {self.name}")
        return self.task

    async def stop(self, patience: float = 5.0) -> None:
        """End after the round in progress, or cancel it when it takes too long."""
        task, parked = self.task, self._parked
        if task is None:
            return
        self._stopping = True
        self.wake()
        if not task.done():
            # A round that is cancelled half-way leaves it unknown what it has changed.
            waiter = asyncio.ensure_future(parked.wait())
            await asyncio.wait({waiter, task}, timeout=patience, return_when="FIRST_COMPLETED")
            waiter.cancel()
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def wake(self) -> None:
        """Run the next round now. Only on the event loop's own thread."""
        self._woken = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def retry_now(self) -> None:
        """End the backoff: the engine has just replied to another call. A loop that failed for
        another reason goes on waiting. Only on the event loop's own thread.
        """
        if isinstance(self.last_error, EngineError):
            self._retry = True
            self.wake()
        for waiter in self._waiting_out:
            _resolve(waiter)

    async def wait_out(self, failures: int) -> None:
        """Wait as after this many failures in a row, or until `retry_now` is called. For calls
        outside of the loop that are repeated.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_out.add(waiter)
        try:
            await asyncio.wait({waiter}, timeout=spread(backoff(failures)))
        finally:
            self._waiting_out.discard(waiter)

    async def next_round(self, timeout: float) -> None:
        """Wait until a round has succeeded, or for `timeout` seconds."""
        ended = asyncio.get_running_loop().create_future()
        self._watching.append(ended)
        await asyncio.wait({ended}, timeout=timeout)
        ended.cancel()

    async def _run(self) -> None:
        try:
            while not self._stopping:
                try:
                    pause = await self.tick()
                except Exception as error:  # a loop survives every error of a round
                    self._failing(error)
                    self.failed(error)
                    await self._back_off(spread(self.backoff()))
                else:
                    self._recovered()
                    while self._watching:
                        _resolve(self._watching.pop())
                    await self._wait(pause)
        finally:
            self._parked.set()
        await asyncio.get_running_loop().create_future()  # parked until `stop` cancels

    def backoff(self) -> float:
        """Return the longest pause after `failures` errors in a row."""
        return backoff(self.failures)

    def _failing(self, error: Exception) -> None:
        self.failures += 1
        self.last_error = error
        message = f"{type(error).__name__}: {error}"
        unhealthy = self.failures == UNHEALTHY_AFTER
        if message == self._last_logged and not unhealthy:
            return  # an outage of an hour is one line, not thousands
        self._last_logged = message
        trace = None if isinstance(error, EngineUnavailable) else error
        log.error(
            "%s failed (%d in a row), trying again within %g s%s: %s",
            self.name,
            self.failures,
            self.backoff(),
            "; it is unhealthy now" if unhealthy else "",
            message,
            exc_info=trace,
        )

    def _recovered(self) -> None:
        if self.failures:
            log.warning("%s works again after %d failures", self.name, self.failures)
            self.failures = 0
            self.last_error = None
            self._last_logged = None

    async def _back_off(self, seconds: float) -> None:
        """Wait after an error. Only `stop` and `retry_now` end it early: signals must not hammer an
        overloaded server.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._retry = False  # a reply before the error says nothing about now
        while not (self._stopping or self._retry) and (left := end - loop.time()) > 0:
            self._woken = False
            await self._wait(left)
        self._woken = False

    async def _wait(self, seconds: float | None) -> None:
        if self._woken or self._stopping or (seconds is not None and seconds <= 0):
            self._woken = False
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _resolve, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            self._woken = False
            if timer is not None:
                timer.cancel()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
