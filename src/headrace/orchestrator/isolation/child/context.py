"""The context that a handler has in a child process: the same words, answered by the worker."""

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
from headrace.model.job import NewJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.stage_call import (
    StageRetry,
    call_stage,
    decode_value,
    encode_value,
)
from headrace.orchestrator.durable.stages import ThreadLimit
from headrace.orchestrator.durable.step_names import StepNames
from headrace.orchestrator.durable.step_store import StepStore
from headrace.orchestrator.isolation.child.artifacts import RemoteArtifacts
from headrace.orchestrator.isolation.child.channel import Link
from headrace.orchestrator.isolation.error_transport import describe
from headrace.orchestrator.isolation.errors import MessageTooLong
from headrace.orchestrator.isolation.log_forwarding import Forwarder
from headrace.orchestrator.isolation.protocol import (
    ENVELOPE,
    Gather,
    Progress,
    Run,
    Sleep,
    Spawn,
    StageBegin,
    StageEnd,
    Wait,
    printable,
)
from headrace.orchestrator.running.threads import NO_LIMIT
from headrace.task import Task


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Where stages of all jobs of this process run that are plain functions. The loop's own pool
    has few threads, and a function that hangs keeps one for good.
    """
    return ThreadPoolExecutor(max_workers=NO_LIMIT, thread_name_prefix="headrace-stage")


class RemoteStepStore(StepStore):
    """Durable steps are kept by the worker; the functions of stages run here."""

    def __init__(self, link: Link, context: RemoteContext, run: int) -> None:
        self._link = link
        self._context = context
        self._run = run
        self._room = ThreadLimit()

    async def stage(
        self,
        step_name: str,
        call: functools.partial[Any],
        done: str | None,
        stage_retry: StageRetry,
    ) -> Any:
        """Run a stage, unless the worker has its result from an earlier attempt."""
        number = self._link.number()
        kept = await self._link.ask(StageBegin(self._run, number, step_name, done))
        if kept is not None:
            return decode_value(step_name, kept, call)
        try:
            value, _ = await call_stage(
                step_name,
                call,
                stage_retry=stage_retry,
                off_loop=self._off_loop,
                never_retry=self._context.never_retry,
                log=self._context.log,
            )
            encoded = encode_value(step_name, value, call)
            self._check_length(step_name, len(encoded))
        except Exception as error:
            # The worker's stage ends first, and with the same error, as if it had run there.
            with contextlib.suppress(Exception):
                await self._link.ask(StageEnd(self._run, number, report=describe(error)))
            raise
        except BaseException as error:
            self._link.send(StageEnd(self._run, number, report=describe(error)))
            raise
        await self._link.ask(StageEnd(self._run, number, result=encoded))
        return value

    async def _off_loop(self, call: Callable[[], Any]) -> Any:
        async with self._room.here():
            run = contextvars.copy_context().run
            return await asyncio.get_running_loop().run_in_executor(_threads(), run, call)

    def _check_length(self, step_name: str, length: int) -> None:
        if length > self._link.longest - ENVELOPE:
            raise MessageTooLong(
                f"stage {step_name!r} returned {length:,} bytes, a child process sends at most "
                f"{self._link.longest - ENVELOPE:,} at once; keep it as an artifact and return a "
                "reference"
            )

    async def sleep(self, step_name: str, seconds: float | None, until: float | None) -> None:
        """Sleep for so long, or until then."""
        await self._link.ask(Sleep(self._run, self._link.number(), step_name, seconds, until))

    async def wait(self, step_name: str, event: str, timeout: float | None) -> bytes:
        """Wait for an event and answer its body."""
        body = await self._link.ask(Wait(self._run, self._link.number(), step_name, event, timeout))
        return body or b"null"

    async def spawn(self, step_name: str, jobs: list[NewJob]) -> list[str]:
        """Make children."""
        ids = await self._link.ask(Spawn(self._run, self._link.number(), step_name, jobs))
        return msgspec.json.decode(ids or b"[]", type=list[str])

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        """Wait until these children have ended."""
        ended = await self._link.ask(Gather(self._run, self._link.number(), ids))
        return msgspec.json.decode(ended or b"[]", type=list[EndedChild])


class RemoteContext(DurableContext):
    """One attempt at one job, seen from a child process."""

    def __init__(self, link: Link, run: Run, tasks: Mapping[str, Task[..., Any]]) -> None:
        self.step_store = RemoteStepStore(link, self, run.run)
        self.step_names = StepNames()
        self.tasks = tasks
        self._link = link
        self._run = run.run
        self._cancelled = link.cancelled
        # Whether the handler is to be left for a sleep or a wait.
        self.suspended = False
        self.job_id = run.job_id
        self.task = run.task
        self.queue = run.queue
        self.attempt = run.attempt
        self.max_attempts = run.max_attempts
        self.token = run.token
        self.key = run.key
        self.lane = run.lane
        self.artifacts = RemoteArtifacts(link, run.run)
        # A logger that no configuration of the handler's module can reach or silence.
        logger = logging.Logger("headrace.job", run.level)
        logger.addHandler(Forwarder(link.send, run=run.run))
        self.log = logging.LoggerAdapter(logger, {})

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should stop: cancelled, out of time, or its lease is lost."""
        return self._cancelled.is_set()

    def suspending(self, *, now: bool) -> None:
        """The handler is left by `Suspended` now, or has to wait for its stages first."""
        self.suspended = now

    def progress(self, percent: float, message: str | None = None) -> None:
        """Tell how far the job is, 0 to 100. Cheap: the latest counts."""
        if not 0 <= percent <= 100:
            raise InvalidInput(f"progress must be between 0 and 100, got {percent!r}")
        text = None if message is None else printable(str(message))
        self._link.progress(Progress(self._run, float(percent), text))
