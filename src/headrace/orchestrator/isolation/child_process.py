"""One child process from the worker's side: start it, run jobs in it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Self

import msgspec

from headrace.model.job import ClaimedJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.isolation.attempt_server import AttemptServer
from headrace.orchestrator.isolation.error_transport import is_memory_error, rebuild
from headrace.orchestrator.isolation.errors import ChildDied, ChildNotStarted, describe_exit
from headrace.orchestrator.isolation.kill_tree import kill_all, off_loop
from headrace.orchestrator.isolation.log_forwarding import levels, replay
from headrace.orchestrator.isolation.protocol import (
    ENVELOPE,
    HEADER,
    LONGEST_FROM_CHILD,
    LONGEST_FROM_WORKER,
    FromChild,
    FromWorker,
    Logged,
    Raised,
    Ready,
    Returned,
    RunJob,
    Start,
    Stop,
    Target,
    decode_from_child,
    frame,
)
from headrace.orchestrator.isolation.supervisor import END_SECONDS, MARKER, end_all, marked
from headrace.orchestrator.isolation.tree_limit import TreeLimit

PROGRAM = "headrace.orchestrator.isolation.child"
# Isolated and without `site`: it starts faster, and needs only the standard library.
SUPERVISOR = ("-I", "-S", str(Path(__file__).with_name("supervisor.py")))
# A supervisor that has not ended its child after so long is killed.
SUPERVISOR_SECONDS = END_SECONDS + 5.0
BUFFER_BYTES = 1_048_576
STOP_SECONDS = 5.0
DRAIN_SECONDS = 1.0
STRAY = "something in it writes to a file descriptor that is not its own"

log = logging.getLogger("headrace.orchestrator.isolation")


class ChannelClosed(Exception):
    """The child has closed the channel: it sends nothing more."""


class ChildProcess:
    """A process that runs one job at a time. `jobs` counts the jobs that it was sent."""

    def __init__(
        self,
        *,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begun_marks: int,
        lifeline: int,
        identity: str,
        tree_limit: TreeLimit | None = None,
    ) -> None:
        # The supervisor of the child: when it has ended, everything below it has ended too.
        self._process = process
        self._begun_marks: int | None = begun_marks
        self._lifeline = lifeline
        self._identity = identity
        self._tree_limit = tree_limit
        self._reader = reader
        self._writer = writer
        self._longest = LONGEST_FROM_CHILD
        self.jobs = 0
        self._ended = asyncio.create_task(self._wait_for_end())

    @classmethod
    async def spawn(cls, *, tree_memory_limit: int | None = None) -> Self:
        """Start a process. It has to `load` before it can run a job.

        With a limit, it and all that it has started are killed together when they use more.
        """
        tree_limit = None if tree_memory_limit is None else TreeLimit(tree_memory_limit)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        begun_marks, begun_marks_end = os.pipe()
        os.set_blocking(begun_marks, False)
        lifeline_end, lifeline = os.pipe()
        os.set_blocking(lifeline, False)
        identity = secrets.token_hex(16)
        writer: asyncio.StreamWriter | None = None
        try:
            # A cancel here also ends a process that is being started.
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=BUFFER_BYTES)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *SUPERVISOR, str(os.getpid())),
                *map(str, (lifeline_end, theirs.fileno(), begun_marks_end)),
                *(("0", "-1") if tree_limit is None else tree_limit.arguments),
                *(*_python(), "-m", PROGRAM),
                stdin=asyncio.subprocess.DEVNULL,
                # A program may read the worker's standard output; prints are not for it.
                stdout=2,
                pass_fds=(
                    *(lifeline_end, theirs.fileno(), begun_marks_end),
                    *(() if tree_limit is None else (tree_limit.end,)),
                ),
                env={**os.environ, MARKER: identity},
                # Ctrl-C is for the worker.
                start_new_session=True,
            )
        except BaseException as error:
            if writer is not None:
                writer.transport.abort()
            ours.close()
            os.close(begun_marks)
            os.close(lifeline)
            if tree_limit is not None:
                tree_limit.close()
            if isinstance(error, OSError):
                raise ChildDied(f"a child process could not be started: {error}") from error
            raise
        finally:
            theirs.close()
            os.close(begun_marks_end)
            os.close(lifeline_end)
            if tree_limit is not None:
                tree_limit.close_end()
        return cls(
            process=process,
            reader=reader,
            writer=writer,
            begun_marks=begun_marks,
            lifeline=lifeline,
            identity=identity,
            tree_limit=tree_limit,
        )

    @property
    def pid(self) -> int:
        """The process id of its supervisor, which the worker has started."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can run a job."""
        return self._process.returncode is None and not self._reader.at_eof()

    async def load(
        self,
        target: Target,
        *,
        memory_limit: int | None = None,
        payload_limit: int | None = None,
        settings: bytes | None = None,
        tracing: bool = False,
    ) -> None:
        """Limit the memory, then load the tasks. Raise what loading raised."""
        self._longest = max(LONGEST_FROM_CHILD, (payload_limit or 0) + ENVELOPE)
        start = Start(
            target=target,
            path=[os.fsencode(entry) for entry in sys.path],
            arguments=[os.fsencode(argument) for argument in sys.argv],
            levels=levels(),
            settings=settings,
            memory_limit=memory_limit,
            payload_limit=payload_limit,
            longest=self._longest,
            tracing=tracing,
        )
        self._send(start)
        try:
            while True:
                match await self._receive():
                    case Ready():
                        return
                    case Raised(report=report):
                        if is_memory_error(report):
                            report.message = (
                                f"memory_limit {memory_limit or 0:,} is too little for loading "
                                f"{target.module}; allow more bytes"
                            )
                        elif memory_limit is not None:
                            # An import that runs out of memory may raise anything.
                            report.message += f" (memory_limit is {memory_limit:,} bytes)"
                        raise rebuild(report)
                    case Logged() as logged:
                        replay(logged, None)
                    case message:
                        raise ChildDied(f"a child sent {message!r} before it was ready")
        except ChannelClosed as error:
            code = await self._end()
            if (exceeded := self._exceeded()) is not None:
                raise MemoryError(f"loading {target.module} {exceeded}") from error
            ending = describe_exit(code)
            limit = "" if memory_limit is None else f"; memory_limit is {memory_limit:,} bytes"
            raise ChildDied(
                f"the child process {ending} while it loaded {target.module}{limit}"
            ) from error

    async def run(self, job: ClaimedJob, context: DurableContext) -> Returned | Raised:
        """Run one job. If this raises, the process cannot be used any more: kill it."""
        self.jobs += 1
        server = AttemptServer(context, self.jobs, self._send)
        try:
            self._send(_run(self.jobs, job, context))
            while True:
                message = await self._receive()
                match message:
                    case Returned() | Raised():
                        if message.run == self.jobs:
                            return message
                        log.warning(
                            "process %d sent the end of run %d during run %d (job %s); dropped",
                            *(self.pid, message.run, self.jobs, job.id),
                        )
                    case _:
                        server.take(message)
        except ChannelClosed as error:
            code = await self._end()
            begun, exceeded = self._begun() == self.jobs, self._exceeded()
            if exceeded is not None:
                if begun:
                    raise MemoryError(f"task {job.task!r} {exceeded}") from error
                log.warning("An idle child process %s", exceeded)
            kind = ChildDied if begun else ChildNotStarted
            ending = describe_exit(code)
            raise kind(f'the child process of task "{job.task}" {ending}') from error
        finally:
            await server.close()

    async def stop(self) -> None:
        """Let an idle process exit by itself; kill it if it does not."""
        self._send(Stop())
        await asyncio.wait({self._ended}, timeout=STOP_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        """Kill the process and all that it has started. All have ended when this returns."""
        if not self._ended.done():
            with contextlib.suppress(OSError):
                os.write(self._lifeline, b".")
            await asyncio.wait({self._ended}, timeout=SUPERVISOR_SECONDS)
        if not self._ended.done():
            # The supervisor was stopped (SIGSTOP), or the machine hardly runs.
            log.error("supervisor %d does not end its child; the worker kills both", self.pid)
            await off_loop(functools.partial(kill_all, self.pid))
        await asyncio.shield(self._ended)
        self._writer.transport.abort()
        if self._begun_marks is not None:
            os.close(self._begun_marks)
            self._begun_marks = None
        if self._tree_limit is not None:
            self._tree_limit.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _send(self, message: FromWorker) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(message, LONGEST_FROM_WORKER))

    async def _receive(self) -> FromChild:
        try:
            (length,) = HEADER.unpack(await self._reader.readexactly(HEADER.size))
            if length > self._longest:
                raise ChildDied(
                    f"child process {self.pid} announced a message of {length:,} bytes, the "
                    f"limit is {self._longest:,}, and was killed; {STRAY}"
                )
            body = await self._reader.readexactly(length)
        except (EOFError, OSError) as error:
            raise ChannelClosed from error
        try:
            return decode_from_child(body)
        except msgspec.DecodeError as error:
            raise ChildDied(
                f"child process {self.pid} sent what is no message ({error}) and was killed; "
                f"{STRAY}"
            ) from error

    def _begun(self) -> int:
        """Return how many jobs it had begun when it died: it has written a mark for each."""
        if self._begun_marks is None:
            return self.jobs  # the worker has killed it
        try:
            return len(os.read(self._begun_marks, self.jobs + 1))
        except BlockingIOError:
            return 0

    def _exceeded(self) -> str | None:
        return None if self._tree_limit is None else self._tree_limit.exceeded()

    async def _end(self) -> int | None:
        """Wait for the end of a process that has closed the channel. Return its exit code."""
        await asyncio.wait({self._ended}, timeout=END_SECONDS + DRAIN_SECONDS)
        return self._process.returncode

    async def _wait_for_end(self) -> None:
        if await self._process.wait() == -signal.SIGKILL:
            # Perhaps the supervisor was killed. Its child ends by itself then, but not the rest.
            await off_loop(functools.partial(end_all, functools.partial(marked, self._identity)))
        os.close(self._lifeline)
        # First read what it has sent, unless something that it started holds the channel open.
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._writer.transport.abort)


def _python() -> list[str]:
    """Return the interpreter. It does not import from the current folder, where a `logging.py`
    would shadow the library's, unless Headrace itself is there.
    """
    home = Path(__file__).parents[3]
    return [sys.executable] if home == Path.cwd() else [sys.executable, "-P"]


def _run(number: int, job: ClaimedJob, context: DurableContext) -> RunJob:
    fields: dict[str, Any] = {
        name: getattr(context, name)
        for name in ("job_id", "queue", "attempt", "max_attempts", "token", "key", "lane", "sealed")
    }
    level = context.log.getEffectiveLevel()
    if context.tracing is not None:
        fields["trace"] = context.tracing.current()
    return RunJob(run=number, task=job.task, args=job.args, level=level, **fields)
