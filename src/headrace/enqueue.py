"""Stores validated jobs, in as few round trips as possible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from headrace.batching import batched
from headrace.batching import each as each_of
from headrace.clock import Clock
from headrace.engine.base import Engine, TransactionalProducing
from headrace.engine.partly_stored import by_store, fail, tell_stored
from headrace.errors import (
    EngineUnavailable,
    HeadraceError,
    InvalidSetting,
    KeyInDoubt,
    LaneFull,
    StoreUnavailable,
)
from headrace.model.job import Inserted, Job, NewJob
from headrace.model.status import State
from headrace.model.times import kept_delay, moment_of

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing

# One call to the engine has at most this many jobs and bytes, so that no transaction grows large.
BATCH_JOBS = 1_000
BATCH_BYTES = 4 * 1_048_576

CLOSED = "the App was closed while jobs were being stored"

OnProgress = Callable[[int], None]
# Is told the ids of jobs that were cancelled, or asked to stop, in favour of a new one.
OnReplaced = Callable[[Sequence[str]], Awaitable[None]]
_Sent = tuple[list[NewJob], asyncio.Task[list[Inserted]]]
_Group = list[tuple[NewJob, asyncio.Future[Inserted]]]


class Enqueuer:
    """Stores jobs. Concurrent calls share a round trip.

    None of them waits for the key of another that is in doubt: such a job is sent alone.
    """

    def __init__(self, engine: Engine, *, clock: Clock, on_replaced: OnReplaced) -> None:
        self._engine = engine
        self._clock = clock
        self._on_replaced = on_replaced
        self._waiting: _Group = []
        self._busy = False
        self._sender: asyncio.Task[None] | None = None
        self._separate_sends: set[asyncio.Task[None]] = set()

    async def one(self, job: NewJob) -> Job:
        """Store one job, in one round trip with others that are stored at this moment."""
        if job.policy is not None:
            return await self._by_policy(job)
        if self._busy:
            future: asyncio.Future[Inserted] = asyncio.get_running_loop().create_future()
            self._waiting.append((job, future))
            return await self._stored(job, await future)
        # Alone: a task and a future would cost more than the rest of this.
        self._busy = True
        inserted: Inserted | None = None
        try:
            if job.key is None:
                [inserted] = await self._engine.insert([job])
            else:
                [inserted] = await self._engine.insert([job], wait=False)
        except KeyInDoubt:
            pass
        finally:
            if self._waiting:
                # A task of its own: cancelling one caller must not cancel the others.
                self._sender = asyncio.get_running_loop().create_task(self._send())
            else:
                self._busy = False
        if inserted is None:
            # No other job waits behind this one any more, so it may wait.
            [inserted] = await self._engine.insert([job])
        return await self._stored(job, inserted)

    async def within(self, connection: Any, job: NewJob) -> Job:
        """Store one job as part of the caller's own transaction."""
        if job.policy is not None:
            raise InvalidSetting(
                "options(conn=…) stores a job in your transaction, which must not hold up others: "
                "it takes no on_duplicate, no window and no lane with when_full; leave those out, "
                "or conn"
            )
        if not hasattr(self._engine, "insert_within"):
            raise InvalidSetting(
                f"options(conn=…) needs PostgreSQL, but this App uses {self._engine.name}"
            )
        engine = cast(TransactionalProducing, self._engine)
        [inserted] = await engine.insert_within(connection, [job])
        if not inserted.created and not await self._engine.get([inserted.id]):
            # The existing job belongs to the same open transaction: it cannot be read from here.
            return stored(job, self._clock.utcnow(), job_id=inserted.id)
        return await self._stored(job, inserted)

    async def many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[Job]:
        """Store any number of jobs in bounded batches, in order.

        Each batch is atomic. If one fails, those before it are stored: the error says how many.
        Jobs that may replace others are stored one by one.
        """
        results: list[Job] = []
        in_flight: _Sent | None = None
        try:
            async for batch in batches(jobs):
                sent, in_flight = in_flight, None
                answered = (
                    None if sent is None else await self._answered(sent, results, on_progress)
                )
                if not any(job.policy is not None for job in batch):
                    in_flight = batch, asyncio.ensure_future(self._engine.insert(batch))
                    # Let it start: what is said of this batch, and the next one, are made while the
                    # engine stores it. Not two at once: if one fails, no later one may be stored.
                    await asyncio.sleep(0)
                if answered is not None:
                    results += answered()
                if in_flight is None:
                    await self._each(batch, results, on_progress)
        finally:
            if in_flight is not None:
                results += (await self._answered(in_flight, results, on_progress))()
        return results

    async def _each(
        self, batch: list[NewJob], results: list[Job], on_progress: OnProgress | None
    ) -> None:
        for job in batch:
            try:
                results.append(await self.one(job))
            except HeadraceError as error:
                tell_stored(error, results)
                raise
        if on_progress is not None:
            on_progress(len(results))

    async def _by_policy(self, job: NewJob) -> Job:
        answer = await self._engine.insert_by_policy(job)
        if answer.inserted is None:
            raise LaneFull(
                f"lane {job.lane!r} of queue {job.queue!r} is full (width {job.width}), and "
                "refuses jobs that would have to wait; try again later, make it wider, or let them "
                'wait: Lane(…, when_full="wait")'
            )
        if gone := (*answer.cancelled, *answer.stopping):
            await self._on_replaced(gone)
        return await self._stored(job, answer.inserted)

    async def _answered(
        self,
        in_flight: _Sent,
        results: list[Job],
        on_progress: OnProgress | None,
    ) -> Callable[[], list[Job]]:
        """Wait until a batch is stored; answers what makes the jobs that are to be returned."""
        batch, sent = in_flight
        try:
            inserted = await sent
        except HeadraceError as error:
            tell_stored(error, results)
            raise
        now = self._clock.utcnow()
        existing = [each.id for each in inserted if not each.created]
        known = {job.id: job for job in await self._engine.get(existing)} if existing else {}
        if on_progress is not None:
            on_progress(len(results) + len(batch))

        def made() -> list[Job]:
            if not existing:
                return [stored(job, now) for job in batch]
            return [
                (None if each.created else known.get(each.id)) or stored(job, now, job_id=each.id)
                for job, each in zip(batch, inserted, strict=True)
            ]

        return made

    async def _send(self) -> None:
        try:
            while self._waiting:
                await self._send_group(self._take())
                # Callers that just got their result may enqueue more: send it in one batch.
                await asyncio.sleep(0)
        finally:
            self._busy, self._sender = False, None
            rest, self._waiting = self._waiting, []
            fail(rest, EngineUnavailable(CLOSED))

    def _take(self) -> _Group:
        size = count = 0
        for job, _ in self._waiting:
            if count == BATCH_JOBS or (count and size + len(job.args) > BATCH_BYTES):
                break
            count += 1
            size += len(job.args)
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _send_group(self, group: _Group) -> None:
        try:
            jobs = [job for job, _ in group]
            if all(job.key is None for job in jobs):
                results = await self._engine.insert(jobs)
            else:
                results = await self._engine.insert(jobs, wait=False)
        except KeyInDoubt:
            await self._separate(group)
        except StoreUnavailable as error:
            parts = by_store(group)
            if len(parts) == 1:
                fail(group, error)
            for part in parts[1:] and parts:
                self._send_apart(self._send_group(part))
        except EngineUnavailable as error:
            fail(group, error)
        except Exception as error:
            if len(group) == 1:
                fail(group, error)
                return
            # One bad job must not fail the others of its batch.
            for each in group:
                await self._send_group([each])
        except BaseException:
            fail(group, EngineUnavailable(CLOSED))
            raise
        else:
            _resolve(group, results)

    async def _separate(self, group: _Group) -> None:
        """Send jobs with a key one by one, since a key is in doubt, and the others together."""
        for each in group:
            if each[0].key is not None:
                self._send_apart(self._send_alone(each))
        others = [each for each in group if each[0].key is None]
        if others:
            await self._send_group(others)

    def _send_apart(self, sending: Awaitable[None]) -> None:
        task = asyncio.ensure_future(sending)
        self._separate_sends.add(task)
        task.add_done_callback(self._separate_sends.discard)

    async def _send_alone(self, each: tuple[NewJob, asyncio.Future[Inserted]]) -> None:
        try:
            _resolve([each], await self._engine.insert([each[0]]))
        except Exception as error:
            fail([each], error)
        except BaseException:
            fail([each], EngineUnavailable(CLOSED))
            raise

    async def _stored(self, job: NewJob, inserted: Inserted) -> Job:
        if inserted.created:
            return stored(job, self._clock.utcnow())
        existing = await self._engine.get([inserted.id])
        # Between the two calls it may have been pruned.
        return existing[0] if existing else stored(job, self._clock.utcnow(), job_id=inserted.id)


class TracedEnqueuer(Enqueuer):
    """The same with a span for each call, whose context the jobs carry."""

    def __init__(
        self, engine: Engine, *, clock: Clock, on_replaced: OnReplaced, tracing: Tracing
    ) -> None:
        super().__init__(engine, clock=clock, on_replaced=on_replaced)
        self._tracing = tracing

    async def one(self, job: NewJob) -> Job:
        with self._tracing.enqueuing(job) as traced:
            return await super().one(traced)

    async def within(self, connection: Any, job: NewJob) -> Job:
        with self._tracing.enqueuing(job) as traced:
            return await super().within(connection, traced)

    async def many(
        self,
        jobs: Iterable[NewJob] | AsyncIterable[NewJob],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[Job]:
        with self._tracing.enqueuing_many() as carrying:
            traced = (carrying(job) async for job in each_of(jobs))
            return await super().many(traced, on_progress=on_progress)


def stored(job: NewJob, now: datetime, *, job_id: str | None = None) -> Job:
    """Return the job as it is right after it was stored, without reading it back."""
    due = now
    if job.run_at is not None:
        due = moment_of(job.run_at)
    elif job.delay:
        due = now + timedelta(seconds=kept_delay(job.delay))
    # No more than 15 keywords, and the others where they differ: with more, Python makes a
    # dictionary of them, at the cost of all the rest together.
    made = Job(
        id=job_id or job.id,
        task=job.task,
        queue=job.queue,
        state=State.SCHEDULED if due > now else State.READY if job.lane is None else State.WAITING,
        args_json=job.args,
        priority=job.priority,
        width=job.width,
        hold=job.hold,
        source=job.source,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        on_crash=job.on_crash,
        created_at=now,
        run_at=due,
    )
    if job.lane is not None:
        made.lane = job.lane
    if job.key is not None:
        made.key = job.key
    if job.meta is not None:
        made.meta_json = job.meta
    if job.parent is not None:
        made.parent, made.group = job.parent, job.group
    if job.expires_at is not None:
        made.expires_at = moment_of(job.expires_at)
    elif job.expires_in is not None:
        made.expires_at = now + timedelta(seconds=kept_delay(job.expires_in))
    return made


def batches(jobs: Iterable[NewJob] | AsyncIterable[NewJob]) -> AsyncIterator[list[NewJob]]:
    """Return the jobs in lists that one call to the engine takes."""
    return batched(jobs, lambda job: len(job.args), length=BATCH_JOBS, size=BATCH_BYTES)


def _resolve(group: _Group, results: list[Inserted]) -> None:
    for (_, future), result in zip(group, results, strict=True):
        if not future.done():
            future.set_result(result)
