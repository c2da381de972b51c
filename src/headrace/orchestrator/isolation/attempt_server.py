"""The worker's side of one job in a child: runs what the handler asks of its context."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from headrace.errors import HeadraceError, Suspended
from headrace.model.durable.transient_stages import GONE, Transient
from headrace.model.job import NewJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.entry_store import EntryStore
from headrace.orchestrator.durable.stage_call import ELSEWHERE
from headrace.orchestrator.isolation.artifact_server import ArtifactServer
from headrace.orchestrator.isolation.error_transport import describe, rebuild
from headrace.orchestrator.isolation.errors import MessageTooLong
from headrace.orchestrator.isolation.log_forwarding import replay
from headrace.orchestrator.isolation.protocol import (
    GONE_STAGE,
    ArtifactOptions,
    Ask,
    Cancel,
    FromChild,
    FromWorker,
    Logged,
    Progress,
    ProgressSeen,
    Reply,
    Report,
)
from headrace.task.codec import encode
from headrace.tracing.forwarding import EndedSpan, take_span

# How soon a handler in a child sees that it should stop.
CANCEL_POLL_SECONDS = 0.1

T = TypeVar("T")

log = logging.getLogger("headrace.orchestrator.isolation")


class AttemptServer:
    """Serves one run. Everything it writes goes through the worker's context and its token."""

    def __init__(
        self, context: DurableContext, run: int, send: Callable[[FromWorker], None]
    ) -> None:
        self._context = context
        self._run = run
        self._send = send
        self._stages: dict[int, tuple[asyncio.Future[msgspec.Raw], asyncio.Task[Any]]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._cancel_poll = self._loop.call_later(CANCEL_POLL_SECONDS, self._poll_cancelled)

    def take(self, message: FromChild) -> None:
        """Deal with a message of the child, without waiting."""
        match message:
            case Ask():
                self._start(self._answer(message), self._inside(message.trace))
            case Logged():
                if message.logger is not None or message.run == self._run:
                    replay(message, self._context)
            case Progress():
                self._progress(message)
            case EndedSpan():
                take_span(message)
            case _:
                pass

    async def close(self) -> None:
        """Cancel what is still being done for the run, which is over."""
        self._cancel_poll.cancel()
        if self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def entries(self) -> EntryStore:
        return self._context.entry_store

    @functools.cached_property
    def artifacts(self) -> ArtifactServer:
        return ArtifactServer(self._context.artifacts, self._start)

    async def follow(self, jobs: list[NewJob], on: str) -> None:
        """Have jobs stored with the outcome of the attempt."""
        self.entries.follow(jobs, on)

    async def publish(self, event_type: str, body: bytes, key: str | None, on: str) -> str:
        """Have an event published with the outcome of the attempt, and return its id."""
        return self.entries.publish(event_type, body, key, on)

    async def begin_stage(
        self, stage: int, name: str, done: str | None, transient: Transient
    ) -> bytes:
        """Return the stored result of a stage. b"": there is none; run it, then `end_stage`.
        `GONE_STAGE`: it is transient, and not needed any more.

        `stage` is a number of the child's choice. The worker's own stage decides and stores: what
        it calls waits for the result of the child.
        """
        begun: asyncio.Future[None] = self._loop.create_future()
        result: asyncio.Future[msgspec.Raw] = self._loop.create_future()

        def begin(_: object = None) -> None:
            if not begun.done():
                begun.set_result(None)

        async def run_in_child() -> msgspec.Raw:  # a result stays JSON here
            begin()
            return await result

        # Retries and time limits are up to the child, where the function runs.
        call = functools.partial(run_in_child)
        running = self._start(self.entries.stage(name, call, done, ELSEWHERE, transient))
        running.add_done_callback(begin)
        self._stages[stage] = result, running
        await begun
        if not running.done():
            return b""
        self._stages.pop(stage, None)
        value = running.result()
        return GONE_STAGE if value is GONE else encode(value)

    async def end_stage(self, stage: int, value: bytes, report: Report | None) -> None:
        """Store the result of a stage, or end it with the error of its function."""
        if stage not in self._stages:
            raise HeadraceError(f"stage {stage} was never begun, or has ended")
        result, running = self._stages.pop(stage)
        if report is None:
            result.set_result(msgspec.Raw(value))
        else:
            result.set_exception(rebuild(report))
        await running

    def _inside(self, trace: dict[str, str]) -> contextvars.Context | None:
        """Return context variables in which the span of the child is the current one."""
        tracing = self._context.tracing
        if tracing is None or not trace:
            return None
        inside = contextvars.copy_context()
        inside.run(tracing.continue_from, trace)
        return inside

    def _start(
        self, call: Coroutine[Any, Any, T], inside: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.create_task(call, context=inside)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the child may not ask for it

    def _progress(self, message: Progress) -> None:
        if message.run == self._run:
            try:
                self._context.progress(message.percent, message.message)
            except Exception as error:
                log.warning("job %s: progress was refused: %s", self._context.job_id, error)
        self._send(ProgressSeen(message.run))

    async def _answer(self, ask: Ask) -> None:
        reply = Reply(ask.run, ask.number)
        try:
            reply.value = await self._call(ask)
        except Suspended as suspended:
            # The child decides whether and when the handler is left.
            self._context.suspending(now=False)
            reply.report = describe(suspended)
        except Exception as error:
            reply.report = describe(error)
        if ask.number == 0:
            return
        try:
            self._send(reply)
        except MessageTooLong as error:
            self._send(Reply(ask.run, ask.number, report=describe(error)))

    async def _call(self, ask: Ask) -> bytes:
        if ask.run != self._run:
            raise HeadraceError("the attempt that asks is over")
        if ask.method not in METHODS:
            raise HeadraceError(f"no method {ask.method!r}; there are {', '.join(METHODS)}")
        arguments, method = METHODS[ask.method]
        value = await method(self)(*arguments.decode(ask.arguments))
        return value if isinstance(value, bytes) else encode(value)

    def _poll_cancelled(self) -> None:
        # A context has no signal for this, and asking it costs next to nothing.
        if self._context.cancelled:
            self._send(Cancel(self._run))
        else:
            self._cancel_poll = self._loop.call_later(CANCEL_POLL_SECONDS, self._poll_cancelled)


# All that a child may call: the types of the arguments, and the method.
METHODS: dict[
    str,
    tuple[
        msgspec.msgpack.Decoder[tuple[Any, ...]],
        Callable[[AttemptServer], Callable[..., Awaitable[Any]]],
    ],
] = {
    name: (msgspec.msgpack.Decoder(types), method)
    for name, types, method in (
        ("begin_stage", tuple[int, str, str | None, Transient], lambda server: server.begin_stage),
        ("end_stage", tuple[int, bytes, Report | None], lambda server: server.end_stage),
        ("sleep", tuple[str, float | None, float | None], lambda server: server.entries.sleep),
        ("wait", tuple[str, str, float | None], lambda server: server.entries.wait),
        ("spawn", tuple[str, list[NewJob]], lambda server: server.entries.spawn),
        ("gather", tuple[list[str]], lambda server: server.entries.gather),
        ("publish", tuple[str, bytes, str | None, str], lambda server: server.publish),
        ("follow", tuple[list[NewJob], str], lambda server: server.follow),
        ("find_artifact", tuple[str, str], lambda server: server.artifacts.find),
        ("keep_artifact", tuple[str, str, str, str], lambda server: server.artifacts.keep),
        ("list_artifacts", tuple[()], lambda server: server.artifacts.list),
        ("read_artifact", tuple[str, int, int], lambda server: server.artifacts.read),
        ("put_file", tuple[bytes, ArtifactOptions], lambda server: server.artifacts.put_file),
        ("begin_put", tuple[int, ArtifactOptions], lambda server: server.artifacts.begin_put),
        ("write_put", tuple[int, bytes], lambda server: server.artifacts.write),
        ("end_put", tuple[int, bool], lambda server: server.artifacts.end_put),
    )
}
