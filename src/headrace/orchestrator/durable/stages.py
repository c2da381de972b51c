"""Stages: named steps whose results are recorded, so that no later attempt runs them again."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import InvalidInput
from headrace.model.durable.entries import STAGE, Outlined, StageRecord
from headrace.model.durable.transient_stages import GONE, Transient
from headrace.model.durable.writes import Entry
from headrace.orchestrator.durable.spans import stage_span
from headrace.orchestrator.durable.stage_call import (
    StageRetry,
    call_stage,
    decode_value,
    encode_value,
)
from headrace.task.codec import encode

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext

# This many plain functions of one attempt's stages run at once; others wait for these.
THREADS = 16


class ThreadLimit:
    """Limits the threads of one attempt. A stage that stops waiting for its thread frees its place,
    even if the function in it hangs.
    """

    def __init__(self) -> None:
        self._of: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def here(self) -> asyncio.Semaphore:
        """Return the limit on the running event loop: a handler in a thread may use several."""
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
        self,
        name: str,
        call: functools.partial[Any],
        *,
        done: str | None,
        stage_retry: StageRetry,
        transient: Transient = None,
    ) -> Any:
        """Run a stage, or return what an earlier attempt has recorded."""
        context = self._context
        if name in self._seen:
            raise InvalidInput(
                f"stage {name!r} has been run in this attempt already; "
                "give each stage of a job a name of its own, or a key"
            )
        self._seen.add(name)
        if context.token > 1:
            stages = await context.on_worker_loop(context.replayed.of_kind(STAGE))
            if transient is not None and any(each in stages for each in transient):
                self._finished += 1
                return GONE
            recorded = _decode_record(stages.get(name))
            if recorded is not None and not recorded.transient:
                self._finished += 1
                return await self._replay(name, recorded, call)
        context.refuse_when_over()
        context.show_stage(stage=name)
        began = time.perf_counter()
        try:
            if context.has_stage_hooks:
                await context.tell_stage(name, done=False)
            running = call_stage(
                name,
                call,
                stage_retry=stage_retry,
                off_loop=functools.partial(self._off_loop, timed=stage_retry.timeout is not None),
                never_retry=context.never_retry,
                log=context.log,
                tell_error=not context.sealed,
            )
            if context.tracing is None or stage_retry.elsewhere:
                value, tries = await running
            else:
                with stage_span(context.tracing, context, name):
                    value, tries = await running
        except BaseException:
            # A handler that catches the error may run this stage again.
            self._seen.discard(name)
            raise
        if transient is None:
            record = await self._record(name, value, call)
        else:
            # What is not written here is on no disk.
            record = StageRecord(transient=True)
        record.seconds = round(time.perf_counter() - began, 6)
        record.done, record.attempt, record.tries = done, context.attempt, tries
        self._finished += 1
        await self._keep(done or name, Entry(STAGE, name, msgspec.json.encode(record)), transient)
        if context.has_stage_hooks:
            await context.tell_stage(done or name, done=True)
        return value

    async def _keep(self, shown: str, entry: Entry, transient: Transient) -> None:
        if transient is None:
            # On disk before the handler goes on: from here on this stage is never run again.
            await self._context.write(stage=shown, progress=self._progress(), entry=entry)
        else:
            # Later attempts run it again, so nobody has to wait.
            self._context.show_stage(stage=shown, progress=self._progress(), entry=entry)

    def _progress(self) -> float | None:
        """Return a progress that grows and never reaches 100: the number of stages is unknown."""
        if self._context.own_progress:
            return None
        return round(100 * self._finished / (self._finished + 1), 1)

    async def _off_loop(self, call: Callable[[], Any], *, timed: bool) -> Any:
        context = self._context
        if context.in_a_thread and not timed:
            return call()
        # A stage that computes must not block other jobs, nor take all threads.
        async with self._thread_limit.here():
            return await context.in_thread(call)

    async def _record(self, name: str, value: Any, call: functools.partial[Any]) -> StageRecord:
        context = self._context
        encoded = encode_value(name, value, call)
        if len(encoded) <= context.payload_limit:
            if context.sealed:
                outline = value.outline() if isinstance(value, Outlined) else None
                sealed = context.sealing.stage(context.job_id, name, encoded)
                return StageRecord(value=msgspec.Raw(encode(outline)), sealed=sealed)
            return StageRecord(value=msgspec.Raw(encoded))
        file = f"stages/{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        if context.sealed:
            encoded = context.sealing.file(context.job_id, file, encoded)
        await context.artifacts.put(file, encoded, media_type="application/json")
        return StageRecord(artifact=file)

    async def _replay(self, name: str, record: StageRecord, call: functools.partial[Any]) -> Any:
        context = self._context
        data: bytes = bytes(record.value)
        if record.sealed is not None:
            data = context.sealing.open_stage(context.job_id, name, record.sealed)
        elif record.artifact is not None:
            data = await context.artifacts.get(record.artifact)
            if context.sealed:
                data = context.sealing.open_file(context.job_id, record.artifact, data)
        return decode_value(name, data, call)


def _decode_record(recorded: bytes | None) -> StageRecord | None:
    return None if recorded is None else msgspec.json.decode(recorded, type=StageRecord)
