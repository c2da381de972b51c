"""Stages: named steps whose results are kept, so that no later attempt does them again."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import InvalidInput
from headrace.model.durable.entries import STAGE, StageRecord
from headrace.model.durable.writes import Entry
from headrace.orchestrator.durable.stage_call import (
    StageRetry,
    call_stage,
    decode_value,
    encode_value,
)

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext

# So many stages of one attempt that are plain functions run at once; others wait for these.
THREADS = 16


class ThreadLimit:
    """Counts the threads of one attempt. Whoever stops waiting for its thread gives the place back,
    also when the function in it hangs.
    """

    def __init__(self) -> None:
        self._of: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def here(self) -> asyncio.Semaphore:
        """For the running loop: a function in a thread may use several."""
        loop = asyncio.get_running_loop()
        if self._of is None or self._of[0] is not loop:
            self._of = loop, asyncio.Semaphore(THREADS)
        return self._of[1]


class Stages:
    """The stages of one attempt."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._seen: set[str] = set()
        self._finished = 0
        self._thread_limit = ThreadLimit()

    async def run(
        self, name: str, call: functools.partial[Any], *, done: str | None, stage_retry: StageRetry
    ) -> Any:
        """Run a stage, or answer what an earlier attempt has kept of it."""
        context = self._context
        if name in self._seen:
            raise InvalidInput(
                f"stage {name!r} has been run in this attempt already; "
                "give each stage of a job a name of its own, or a key"
            )
        self._seen.add(name)
        if context.token > 1:
            kept = (await context.on_worker_loop(context.replayed.of_kind(STAGE))).get(name)
            if kept is not None:
                self._finished += 1
                return await self._replay(name, kept, call)
        context.refuse_when_over()
        context.show_stage(stage=name)
        began = time.perf_counter()
        try:
            value, tries = await call_stage(
                name,
                call,
                stage_retry=stage_retry,
                off_loop=functools.partial(self._off_loop, timed=stage_retry.timeout is not None),
                never_retry=context.never_retry,
                log=context.log,
            )
        except BaseException:
            # Whoever catches the error may try this stage once more.
            self._seen.discard(name)
            raise
        record = await self._record(name, value, call)
        record.seconds = round(time.perf_counter() - began, 6)
        record.done, record.attempt, record.tries = done, context.attempt, tries
        self._finished += 1
        # On disk before the handler goes on: from here on this stage is never run again.
        await context.write(
            stage=done or name,
            progress=self._progress(),
            entry=Entry(STAGE, name, msgspec.json.encode(record)),
        )
        return value

    def _progress(self) -> float | None:
        """Nobody knows how many stages will follow: move on, and never quite arrive."""
        if self._context.own_progress:
            return None
        return round(100 * self._finished / (self._finished + 1), 1)

    async def _off_loop(self, call: Callable[[], Any], *, timed: bool) -> Any:
        context = self._context
        if context.in_a_thread and not timed:
            return call()
        # A step that computes must not hold up the jobs beside it, nor take all threads there are.
        async with self._thread_limit.here():
            return await context.in_thread(call)

    async def _record(self, name: str, value: Any, call: functools.partial[Any]) -> StageRecord:
        encoded = encode_value(name, value, call)
        if len(encoded) <= self._context.payload_limit:
            return StageRecord(value=msgspec.Raw(encoded))
        file = f"stages/{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        await self._context.artifacts.put(file, encoded, media_type="application/json")
        return StageRecord(artifact=file)

    async def _replay(self, name: str, kept: bytes, call: functools.partial[Any]) -> Any:
        record = msgspec.json.decode(kept, type=StageRecord)
        data: bytes = bytes(record.value)
        if record.artifact is not None:
            data = await self._context.artifacts.get(record.artifact)
        return decode_value(name, data, call)
