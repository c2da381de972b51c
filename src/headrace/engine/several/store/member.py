"""One of several stores, as this process sees it: whether it answers, and what it is still owed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from headrace.engine.base import Engine
from headrace.engine.missing_stores import STORE_AWAY
from headrace.engine.several.store.debts import Debts
from headrace.errors import EngineError, EngineUnavailable, KeyInDoubt, StoreUnavailable
from headrace.model.outcome import Settlement
from headrace.model.views import Finding

log = logging.getLogger("headrace.stores")

T = TypeVar("T")
monotonic = time.monotonic

LONGEST_REPLY = 5.0
"""A view or a step of upkeep that takes longer holds up what is asked of the other stores."""
FIRST_PAUSE = 0.05
# A store that had too few jobs is asked again after so long, whether or not a signal has come.
REST = 1.0
REST_WITHOUT_SIGNALS = 0.25
LONGEST_PAUSE = 2.0


class Member:
    """A store. While it does not answer (`away`), a task asks it until it does, and nobody else
    waits for it.
    """

    def __init__(self, name: str, url: str, engine: Engine) -> None:
        self.name = name
        # Without a password.
        self.url = url
        self.engine = engine
        self.away: EngineError | None = None
        self.since: datetime | None = None
        self.opened = False
        # Outcomes that it has not recorded yet, and which jobs of it are leased to workers here.
        self.debts = Debts()
        self.held: dict[str, str] = {}
        # The ids of workers of this process, and those that they are registered under here.
        self.workers: dict[str, str] = {}
        # When the last claim found less than it asked for, if nothing has come in since.
        self.empty_since: float | None = None
        # An exchange that others did not wait for, and how many jobs it may bring.
        self.late: asyncio.Task[None] | None = None
        self.late_share = 0
        self._on_back: Callable[[Member], Awaitable[None]] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._settling = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Member {self.name} {self.url}{' away' if self.away else ''}>"

    @property
    def shown(self) -> str:
        """Return what people read."""
        return f"the store {self.name!r} ({self.url})"

    def watched_by(self, on_back: Callable[[Member], Awaitable[None]]) -> None:
        """Call this when the store answers again, before anybody asks it anything."""
        self._on_back = on_back

    # --- asking

    async def ask(self, call: Callable[[Engine], Awaitable[T]]) -> T:
        """Ask this store, whether or not it answered before. Its errors name it."""
        try:
            answer = await call(self.engine)
        except (KeyInDoubt, StoreUnavailable):
            raise
        except EngineUnavailable as error:
            self.lost(error)
            raise self.unavailable(error) from error
        return answer

    async def ask_soon(self, call: Callable[[Engine], Awaitable[T]]) -> T:
        """The same for what others wait for: raise at once while it is away, and do not wait for
        long.
        """
        if self.away is not None:
            raise self.unavailable(self.away)
        try:
            async with asyncio.timeout(LONGEST_REPLY):
                return await self.ask(call)
        except TimeoutError:
            error = EngineUnavailable(f"no answer within {LONGEST_REPLY:g} s")
            self.lost(error)
            raise self.unavailable(error) from None

    def unavailable(self, error: Exception) -> StoreUnavailable:
        """Return the error that names this store."""
        return StoreUnavailable(f"{self.shown} does not answer: {error}")

    # --- away and back

    def lost(self, error: EngineError) -> None:
        """Note that it does not answer, and ask it until it does."""
        if self.away is None:
            self.since = datetime.now(UTC)
            log.warning("%s does not answer; the others go on: %s", self.shown, error)
        self.away = error
        if self._watch is None or self._watch.done():
            loop = asyncio.get_running_loop()
            self._watch = loop.create_task(self._until_back(), name=f"headrace store {self.name}")

    async def _until_back(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(LONGEST_REPLY):
                    await self._try()
                await self.settle_debts()
                self.away = self.since = None
                if self._on_back is not None:
                    await self._on_back(self)
            except Exception as error:
                # Whatever it is: nobody else would ask this store again.
                if isinstance(error, EngineError):
                    self.away = error
                elif not isinstance(error, TimeoutError):
                    log.exception("%s cannot be used yet", self.shown)
                    self.away = EngineError(f"{type(error).__name__}: {error}")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                log.warning("%s answers again", self.shown)
                return

    async def _try(self) -> None:
        if self.opened:
            await self.engine.now()
        else:
            await self.engine.open()
            self.opened = True

    def finding(self) -> Finding | None:
        """Return what is to be said of it while it is away."""
        if self.away is None:
            return None
        return Finding(
            "error",
            "store",
            f"{self.shown} does not answer: {self.away}. Its jobs are not shown and none of them "
            "starts; the other stores go on",
            "Start it again, or look at its address in HEADRACE_URL and HEADRACE_STORES.",
            kind=STORE_AWAY,
            name=self.name,
            since=self.since,
        )

    # --- outcomes that it is owed

    async def settle_debts(self) -> None:
        """Record the outcomes that it could not be told. None is lost by an error."""
        async with self._settling:
            while batch := self.debts.first():
                try:
                    reply = await self.engine.exchange(batch)
                except EngineUnavailable:
                    raise
                except Exception:
                    if len(batch) > 1:
                        self.debts.one_by_one()
                        continue
                    log.exception("The outcome of job %s cannot be recorded", batch[0].job_id)
                    self.debts.replace_first()
                    continue
                self.settled(batch)
                self.debts.paid(batch, reply.refused)

    async def finish(self) -> None:
        """Wait for what is on its way to this store, then record what it is owed."""
        if self.late is not None:
            await asyncio.wait([self.late])
        await self.settle_debts()

    # --- workers of this process

    def worker_of(self, their_id: str) -> str | None:
        """Return the worker that is registered here under this id."""
        return next((ours for ours, theirs in self.workers.items() if theirs == their_id), None)

    def lost_by(self, worker_id: str) -> list[str]:
        """Return and forget the jobs that were leased to a worker: its lease here has lapsed."""
        lost = [job_id for job_id, holder in list(self.held.items()) if holder == worker_id]
        for job_id in lost:
            self.held.pop(job_id, None)
        return lost

    def may_have_jobs(self, now: float) -> bool:
        """Return whether a claim may find as many as it asks for."""
        if self.empty_since is None:
            return True
        rest = REST if self.engine.listening else REST_WITHOUT_SIGNALS
        return now - self.empty_since >= rest

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """Forget the leases of these."""
        for each in settlements:
            self.held.pop(each.job_id, None)

    async def close(self) -> None:
        """Close it, whatever state it is in."""
        if self.away is None:
            with contextlib.suppress(EngineError, TimeoutError):
                async with asyncio.timeout(LONGEST_REPLY):
                    await self.finish()
        running = [each for each in (self._watch, self.late) if each is not None]
        for task in running:
            task.cancel()
        for task in running:
            with contextlib.suppress(BaseException):
                await task
        self._watch = self.late = None
        if self.debts.attempts:
            log.warning(
                "%s was not told how %d jobs ended: they run again when their leases lapse",
                self.shown,
                len(self.debts.attempts),
            )
        await self.engine.close()
