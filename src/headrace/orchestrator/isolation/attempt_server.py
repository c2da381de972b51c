"""The worker's side of one job in a child: what the handler asks of its context."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable

import msgspec

from headrace.errors import HeadraceError, Suspended
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.stage_call import NO_RETRY
from headrace.orchestrator.isolation.artifact_server import ArtifactServer
from headrace.orchestrator.isolation.error_transport import describe, rebuild
from headrace.orchestrator.isolation.errors import MessageTooLong
from headrace.orchestrator.isolation.log_forwarding import replay
from headrace.orchestrator.isolation.protocol import (
    Answer,
    Cancel,
    Durable,
    FromChild,
    FromWorker,
    Gather,
    Logged,
    Progress,
    ProgressSeen,
    Question,
    Raised,
    Ready,
    Returned,
    RunStage,
    Sleep,
    Spawn,
    StageBegin,
    StageEnd,
    Wait,
)
from headrace.task.codec import encode

# How soon a handler in a child sees that it should stop.
CANCEL_POLL_SECONDS = 0.1

log = logging.getLogger("headrace.orchestrator.isolation")


class Session:
    """Answers one run. Everything it writes goes through the worker's context and its token."""

    def __init__(
        self, context: DurableContext, run: int, send: Callable[[FromWorker], None]
    ) -> None:
        self._context = context
        self._run = run
        self._send = send
        self._steps: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._watching = self._loop.call_later(CANCEL_POLL_SECONDS, self._watch)

    def take(self, message: FromChild) -> None:
        """Deal with a message of the child, without waiting."""
        match message:
            case Logged():
                if message.logger is not None or message.run == self._run:
                    replay(message, self._context)
            case Progress():
                self._progress(message)
            case StageEnd():
                self._end_step(message)
            case Ready() | Returned() | Raised():
                pass
            case _:
                if isinstance(message, StageBegin) and message.run == self._run:
                    self._steps[message.number] = self._loop.create_future()
                task = asyncio.create_task(self._answer(message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def close(self) -> None:
        """The run is over: what is still being answered has nobody to hear it."""
        self._watching.cancel()
        if self._answering:
            tasks = list(self._answering)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _progress(self, message: Progress) -> None:
        if message.run == self._run:
            try:
                self._context.progress(message.percent, message.message)
            except Exception as error:
                log.warning("job %s: progress was refused: %s", self._context.job_id, error)
        self._send(ProgressSeen(message.run))

    def _end_step(self, message: StageEnd) -> None:
        step = self._steps.get(message.number)
        if message.run != self._run or step is None or step.done():
            return
        if message.report is None:
            step.set_result(msgspec.Raw(message.result))
        else:
            step.set_exception(rebuild(message.report))

    async def _answer(self, question: Question) -> None:
        run, number = question.run, question.number
        try:
            answer = Answer(run, number, await self._value(question))
        except Suspended as suspended:
            # Whether the handler is left, and when, is seen to where it runs.
            self._context.suspending(now=False)
            answer = Answer(run, number, report=describe(suspended))
        except Exception as error:
            answer = Answer(run, number, report=describe(error))
        try:
            self._send(answer)
        except MessageTooLong as error:
            self._send(Answer(run, number, report=describe(error)))

    async def _value(self, question: Question) -> bytes:
        if question.run != self._run:
            raise HeadraceError("the attempt that asks is over")
        match question:
            case StageBegin():
                return await self._stage(question)
            case Sleep() | Wait() | Spawn() | Gather():
                return await self._durable(question)
            case StageEnd():
                raise HeadraceError("a stage ended that never began")
            case _:
                return await self._files.answer(question)

    @functools.cached_property
    def _files(self) -> ArtifactServer:
        return ArtifactServer(self._context.artifacts)

    async def _stage(self, question: StageBegin) -> bytes:
        """Let the worker's own stage decide: kept already, or to be run, over there."""
        step = self._steps[question.number]
        try:
            call = functools.partial(
                _run_in_child, lambda: self._send(RunStage(self._run, question.number)), step
            )
            # How often and how long to try is seen to where the function runs.
            value = await self._context.step_store.stage(
                question.name, call, question.done, NO_RETRY
            )
            return encode(value)
        finally:
            self._steps.pop(question.number, None)
            with contextlib.suppress(asyncio.InvalidStateError, asyncio.CancelledError):
                step.exception()

    async def _durable(self, question: Durable) -> bytes:
        steps = self._context.step_store
        match question:
            case Sleep(_, _, step_name, seconds, until):
                await steps.sleep(step_name, seconds, until)
                return b""
            case Wait(_, _, step_name, event, timeout):
                return await steps.wait(step_name, event, timeout)
            case Spawn(_, _, step_name, jobs):
                return encode(await steps.spawn(step_name, jobs))
            case Gather(_, _, ids):
                return encode(await steps.gather(ids))

    def _watch(self) -> None:
        # A context has no signal for this, and a look costs next to nothing.
        if self._context.cancelled:
            self._send(Cancel(self._run))
        else:
            self._watching = self._loop.call_later(CANCEL_POLL_SECONDS, self._watch)


async def _run_in_child(
    begin: Callable[[], None], step: asyncio.Future[msgspec.Raw]
) -> msgspec.Raw:
    """What the worker's stage runs: the real function is over there. Results stay JSON here."""
    begin()
    return await step
