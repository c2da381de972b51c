"""The context of a handler in a child process: the same interface, served by the worker."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from headrace.errors import InvalidInput
from headrace.model.durable.children import EndedChild
from headrace.model.durable.transient_stages import GONE, Transient
from headrace.model.job import NewJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.entry_names import EntryNames
from headrace.orchestrator.durable.entry_store import EntryStore
from headrace.orchestrator.durable.spans import stage_span
from headrace.orchestrator.durable.stage_call import (
    StageRetry,
    call_stage,
    decode_value,
    encode_value,
)
from headrace.orchestrator.durable.stages import ThreadLimit
from headrace.orchestrator.isolation.child.artifacts import RemoteArtifacts
from headrace.orchestrator.isolation.child.channel import ChildChannel
from headrace.orchestrator.isolation.error_transport import describe
from headrace.orchestrator.isolation.errors import MessageTooLong
from headrace.orchestrator.isolation.log_forwarding import Forwarder
from headrace.orchestrator.isolation.protocol import (
    ENVELOPE,
    GONE_STAGE,
    Progress,
    RunJob,
    printable,
)
from headrace.orchestrator.running.threads import NO_LIMIT
from headrace.task import Task


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads for stages that are plain functions, of all jobs of this process. The
    loop's own pool has few threads, and a function that hangs occupies one for good.
    """
    return ThreadPoolExecutor(max_workers=NO_LIMIT, thread_name_prefix="headrace-stage")


class RemoteEntryStore(EntryStore):
    """Entries are stored by the worker; the functions of stages run here."""

    def __init__(self, channel: ChildChannel, context: RemoteContext, run: int) -> None:
        self._channel = channel
        self._context = context
        self._run = run
        self._ask = functools.partial(channel.ask, run)
        self._thread_limit = ThreadLimit()

    async def stage(
        self,
        entry_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
        transient: Transient = None,
    ) -> Any:
        stage = self._channel.number()
        try:
            stored = await self._ask("begin_stage", stage, entry_name, done, transient)
            if stored == GONE_STAGE:
                return GONE
            if stored:
                return decode_value(entry_name, stored, call)
            running = call_stage(
                entry_name,
                call,
                stage_retry=stage_retry,
                off_loop=self._off_loop,
                never_retry=self._context.never_retry,
                log=self._context.log,
                tell_error=not self._context.sealed,
            )
            if self._context.tracing is None:
                value, _ = await running
            else:
                with stage_span(self._context.tracing, self._context, entry_name):
                    value, _ = await running
            # The value of a transient stage does not leave this process.
            encoded = b"null" if transient is not None else encode_value(entry_name, value, call)
            self._check_length(entry_name, len(encoded))
        except Exception as error:
            # The worker's stage ends first, and with the same error, as if it had run there.
            with contextlib.suppress(Exception):
                await self._ask("end_stage", stage, b"", describe(error))
            raise
        except BaseException as error:
            self._channel.tell(self._run, "end_stage", stage, b"", describe(error))
            raise
        await self._ask("end_stage", stage, encoded, None)
        return value

    async def _off_loop(self, call: Callable[[], Any]) -> Any:
        async with self._thread_limit.here():
            run = contextvars.copy_context().run
            return await asyncio.get_running_loop().run_in_executor(_threads(), run, call)

    def _check_length(self, entry_name: str, length: int) -> None:
        limit = self._channel.longest - ENVELOPE
        if length > limit:
            raise MessageTooLong(
                f"stage {entry_name!r} returned {length:,} bytes, a child process sends at most "
                f"{limit:,} at once; keep it as an artifact and return a reference"
            )

    async def sleep(self, entry_name: str, seconds: float | None, until: float | None) -> None:
        await self._ask("sleep", entry_name, seconds, until)

    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        return await self._ask("wait", entry_name, event, timeout)

    async def spawn(self, entry_name: str, jobs: list[NewJob]) -> list[str]:
        return msgspec.json.decode(await self._ask("spawn", entry_name, jobs), type=list[str])

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        return msgspec.json.decode(await self._ask("gather", ids), type=list[EndedChild])

    def follow(self, jobs: list[NewJob], on: str) -> None:
        self._channel.ask_now(self._run, "follow", jobs, on)

    def publish(self, event_type: str, body: bytes, key: str | None, on: str) -> str:
        made = self._channel.ask_now(self._run, "publish", event_type, body, key, on)
        return msgspec.json.decode(made, type=str)


class RemoteContext(DurableContext):
    """One attempt at one job, seen from a child process."""

    def __init__(
        self, channel: ChildChannel, run: RunJob, tasks: Mapping[str, Task[..., Any]]
    ) -> None:
        self.entry_store = RemoteEntryStore(channel, self, run.run)
        self.entry_names = EntryNames()
        self.tasks = tasks
        self.tracing = channel.tracing
        self.args_json = run.args
        self.sealed = run.sealed
        self._channel = channel
        self._run = run.run
        self._cancelled = channel.cancelled
        # Whether `Suspended` is leaving the handler, for a sleep or a wait.
        self.suspended = False
        self.job_id = run.job_id
        self.task = run.task
        self.queue = run.queue
        self.attempt = run.attempt
        self.max_attempts = run.max_attempts
        self.token = run.token
        self.key = run.key
        self.lane = run.lane
        self.artifacts = RemoteArtifacts(channel, run.run)
        # A logger that no configuration of the handler's module can reach or silence.
        logger = logging.Logger("headrace.job", run.level)
        logger.addHandler(Forwarder(channel.send, run=run.run))
        self.log = logging.LoggerAdapter(logger, {})

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def suspending(self, *, now: bool) -> None:
        self.suspended = now

    def progress(self, percent: float, message: str | None = None) -> None:
        if not 0 <= percent <= 100:
            raise InvalidInput(f"progress must be between 0 and 100, got {percent!r}")
        text = None if message is None else printable(str(message))
        self._channel.progress(Progress(self._run, float(percent), text))
