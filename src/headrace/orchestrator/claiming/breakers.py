"""What a worker does about circuit breakers: counts failures, and lets one job through at a time.

Claimed jobs pass by `admit`. Those of a lane whose breaker is open, or about which this worker does
not know enough, are set aside until the next round has looked. See decision 0050.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence

from headrace.breakers import store
from headrace.breakers.audit import note
from headrace.breakers.store import Key, OpenBreaker, name_of
from headrace.engine.base import Engine
from headrace.errors import RecordConflict
from headrace.loops.loop import Loop, around
from headrace.model.job import ClaimedJob
from headrace.model.limits.breaker import Breaker, BreakerView
from headrace.model.outcome import Completed, Outcome
from headrace.model.times import moment_of
from headrace.orchestrator.claiming.breaker_failures import (
    Failures,
    SeenFailures,
    error_of,
    proof_of,
)
from headrace.orchestrator.claiming.breaker_trials import ClaimedJobs, Trial, by_key
from headrace.orchestrator.running.attempt import monotonic

log = logging.getLogger("headrace.breakers")

# Failures are added to what others have counted at most so often.
COUNT_SECONDS = 0.1
LONGEST_LOOK = 1.0
FORGET_SECONDS = 3_600.0
# Where nobody has come to be tried for so long, nobody will.
ABANDONED_SECONDS = 86_400.0


class WorkerBreakers(Loop):
    """The breakers of one worker, by the names of tasks. Without any there is no loop."""

    name = "breakers"
    claimed: ClaimedJobs

    def __init__(
        self,
        *,
        engine: Engine,
        by_task: Mapping[str, Breaker],
        tasks: Mapping[str, object],
        queues: Sequence[str],
        worker: Callable[[], str],
    ) -> None:
        super().__init__()
        self.engine = engine
        self.by_task = by_task
        self.tasks = tasks
        # Empty: all.
        self.queues = queues
        self.open: dict[Key, OpenBreaker] = {}
        self.trials: dict[Key, Trial] = {}
        self.aside: list[ClaimedJob] = []
        self._worker = worker
        self._failures = SeenFailures()
        self._looked_at = float("-inf")
        self._counted_at = float("-inf")
        self._forget_at = 0.0
        self._working = asyncio.Lock()

    # --- called by the dispatcher

    def admit(self, jobs: Sequence[ClaimedJob], now: float) -> Sequence[ClaimedJob]:
        """Return those of these claimed jobs that may start. The others wait here."""
        fresh = now - self._looked_at < self._shortest_pause / 2
        closed, suspects = self.open, self._failures.suspects
        if fresh and not closed and not suspects:
            return jobs
        admitted = []
        for job in jobs:
            known, key = fresh or job.task not in self.by_task, (job.queue, job.lane)
            if job.lane is None or (known and key not in closed and key not in suspects):
                admitted.append(job)
            else:
                self.aside.append(job)
        if self.aside:
            self._work()
        return admitted

    def ended(self, job: ClaimedJob, outcome: Outcome | None) -> None:
        """Take notice of the end of an attempt, or of a job that was given back."""
        if job.lane is None:
            return
        key = (job.queue, job.lane)
        trial = self.trials.get(key) if self.trials else None
        if trial is not None and (trial.job_id, trial.token) == (job.id, job.token):
            trial.over, trial.proof = True, proof_of(outcome)
            self._work()
            return
        if type(outcome) is Completed or proof_of(outcome) is not False:
            return
        breaker = self.by_task.get(job.task)
        if breaker is None or key in self.open:
            return
        self._note(key, breaker, job.task, outcome)

    def _note(self, key: Key, breaker: Breaker, task: str, outcome: Outcome | None) -> None:
        waiting = bool(self._failures.by_key)
        if self._failures.add(key, breaker, task, error_of(outcome)):
            # It will open, if nobody tells otherwise: start nothing more of it until then. Soon, as
            # this is called in the middle of the end of an attempt.
            asyncio.get_running_loop().call_soon(self.claimed.give_back_unstarted)
            self._work()
            return
        wait = self._counted_at + COUNT_SECONDS - monotonic()
        if wait <= 0:
            self._work()
        elif not waiting:
            asyncio.get_running_loop().call_later(wait, self._work)

    def _work(self) -> None:
        if self.task is None:
            self.start()  # a task with a breaker was registered since the worker started
        self.wake()

    def take_all(self) -> list[ClaimedJob]:
        """Return what waits here, to be released."""
        aside, self.aside = self.aside, []
        return aside

    # --- the loop

    async def begin(self) -> None:
        """Look for the first time, before anything is claimed. Without breakers of its own a worker
        only closes what a deploy has left open.
        """
        await self._look(monotonic())
        for key, breaker in list(self.open.items()):
            task = breaker.view.task
            removed = task in self.tasks and task not in self.by_task
            if removed and (not self.queues or key[0] in self.queues):
                await self._close(key, breaker, f"task {task} has no breaker any more")
        if self.by_task:
            self.start()

    async def flush(self) -> None:
        """Count what has failed, and tell how trials ended. For a worker that stops."""
        if self._failures.by_key or self.trials:
            await self.tick()

    async def tick(self) -> float:
        async with self._working:
            began = monotonic()
            aside = by_key(self.take_all())
            try:
                await self._count()
                await self._look(began)
                now = await self.engine.now() if self.open or self.trials else 0.0
                await self._judge(now)
                await self._renew(now)
                await self._decide(aside, now)
                await self._forget()
            except BaseException:
                for jobs in aside.values():
                    self.claimed.give_back(jobs)
                raise
        return around(self._look_seconds)

    @property
    def _shortest_pause(self) -> float:
        return min((each.pause for each in self.by_task.values()), default=60.0)

    @property
    def _look_seconds(self) -> float:
        return min(LONGEST_LOOK, self._shortest_pause / 5)

    async def _look(self, began: float) -> None:
        """Read which are open. What was claimed ahead is given back if one has opened."""
        found = await store.open_breakers(self.engine)
        self._found(found)
        # As of when it was asked for: what is written meanwhile may not be in it.
        self._looked_at = began

    def _found(self, found: dict[Key, OpenBreaker]) -> None:
        opened = found.keys() - self.open.keys()
        self.open = found
        if opened:
            self.claimed.give_back_unstarted()

    async def _count(self) -> None:
        """Add failures to what is kept, and open what has too many."""
        self._counted_at = monotonic()
        await self._failures.count(self.engine, self._open)

    async def _open(self, key: Key, failed: Failures, now: float) -> None:
        breaker = failed.breaker
        view = BreakerView(
            queue=key[0],
            lane=key[1],
            since=moment_of(now),
            until=moment_of(now + breaker.pause),
            pause=breaker.pause,
            task=failed.task,
            failures=breaker.failures,
            within=breaker.within,
            error=failed.error,
        )
        try:
            opened = await store.put(self.engine, view, 0)
        except RecordConflict:
            return  # somebody was faster, and holds the lane
        await store.hold(self.engine, opened, now)
        self._found(self.open | {key: opened})
        log.error("The breaker of %s is open: %s", name_of(key), view.cause)
        await note(
            self.engine, "breaker.open", name_of(key), who=self._who, now=now,
            task=view.task, cause=view.cause, pause=view.pause,
        )  # fmt: skip

    async def _close(self, key: Key, breaker: OpenBreaker, why: str) -> None:
        with contextlib.suppress(RecordConflict):
            await store.close(self.engine, breaker)
            log.warning("The breaker of %s is closed: %s", name_of(key), why)
            now = await self.engine.now()
            since = breaker.view.since
            seconds = round(now - since.timestamp(), 3)
            await note(
                self.engine, "breaker.close", name_of(key), who=self._who, now=now,
                reason=why, open_seconds=seconds,
            )  # fmt: skip
        self.open = {each: found for each, found in self.open.items() if each != key}

    @property
    def _who(self) -> str:
        return f"worker {self._worker()}"

    async def _judge(self, now: float) -> None:
        """Act on trials that are over, and forget those that somebody else has ended."""
        for key, trial in list(self.trials.items()):
            current = self.open.get(key)
            if current != trial.breaker:
                if current is None:
                    # Whoever closed it, perhaps this worker, may have lost the engine meanwhile.
                    await store.release(self.engine, trial.breaker)
                del self.trials[key]
            elif trial.over:
                if trial.proof:
                    await self._close(key, current, f"job {trial.job_id} was tried and completed")
                else:
                    await self._again(key, trial, now)
                del self.trials[key]

    async def _again(self, key: Key, trial: Trial, now: float) -> None:
        with contextlib.suppress(RecordConflict):
            self.open[key] = await store.put_off(
                self.engine, trial.breaker, trial.pause, now,
                phase="open", trial=None, trials=trial.breaker.view.trials + 1,
            )  # fmt: skip

    async def _decide(self, aside: dict[Key, list[ClaimedJob]], now: float) -> None:
        """Let jobs pass that were set aside, try one, or give them back."""
        for key in list(aside):
            current, jobs = self.open.get(key), aside[key]
            count = 0
            if current is None:
                count = len(jobs)
            elif key in self.trials or current.until > now:
                await store.hold(self.engine, current, now)
            elif await self._try(key, current, jobs[0]):
                count = 1
            del aside[key]
            self.claimed.give_back(jobs[count:])
            self.claimed.take_in(jobs[:count])

    async def _try(self, key: Key, current: OpenBreaker, job: ClaimedJob) -> bool:
        """Make this job the one that is tried; return False if another worker was faster."""
        # What its task says now counts, whatever it was opened with.
        breaker = self.by_task.get(job.task)
        pause = current.view.pause if breaker is None else breaker.pause
        try:
            trial = await store.put_off(
                self.engine, current, pause, await self.engine.now(),
                phase="trial", trial=job.id, pause=pause,
            )  # fmt: skip
        except RecordConflict:
            return False
        self.open[key] = trial
        self.trials[key] = Trial(job.id, job.token, trial, pause)
        log.info("Breaker of %s: job %s is tried", name_of(key), job.id)
        return True

    async def _renew(self, now: float) -> None:
        """Let nobody else begin a trial while one runs here."""
        for key, trial in list(self.trials.items()):
            if trial.over or trial.breaker.until - now > trial.pause / 2:
                continue
            try:
                self.open[key] = trial.breaker = await store.put_off(
                    self.engine, trial.breaker, trial.pause, now
                )
            except RecordConflict:
                del self.trials[key]

    async def _forget(self) -> None:
        """Now and then: close what nobody comes to try, and forget failures of long ago."""
        if monotonic() < self._forget_at:
            return
        self._forget_at = monotonic() + around(FORGET_SECONDS)
        now = await self.engine.now()
        for key, breaker in list(self.open.items()):
            if breaker.until < now - ABANDONED_SECONDS:
                await self._close(key, breaker, "no job came to be tried for a day")
        await store.forget_failures(self.engine, now)
