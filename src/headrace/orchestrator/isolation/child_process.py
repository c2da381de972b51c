"""One child process, as the worker sees it: start it, run jobs in it, end it."""

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
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from headrace.model.job import ClaimedJob
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.isolation.attempt_server import AttemptServer
from headrace.orchestrator.isolation.error_transport import is_memory_error, rebuild
from headrace.orchestrator.isolation.errors import ChildDied, ChildNotStarted, describe_exit
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
from headrace.orchestrator.isolation.supervisor import (
    END_SECONDS,
    MARKER,
    descendants,
    end_all,
    exists,
    marked,
)

PROGRAM = "headrace.orchestrator.isolation.child"
# It needs nothing of the program's, and starts faster without.
SUPERVISOR = ("-I", "-S", str(Path(__file__).with_name("supervisor.py")))
# A supervisor that has done nothing for so long after it was told to is not waited for.
KEEPER_SECONDS = END_SECONDS + 5.0
BUFFER_BYTES = 1_048_576
LEAVE_SECONDS = 5.0
DRAIN_SECONDS = 1.0
STRAY = "something in it writes to a file descriptor that is not its own"

log = logging.getLogger("headrace.orchestrator.isolation")


class ChannelClosed(Exception):
    """Nothing more will come from this child."""


class ChildProcess:
    """A process that runs one job at a time. `jobs` counts those it was given."""

    def __init__(
        self,
        *,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begun_marks: int,
        lifeline: int,
        identity: str,
    ) -> None:
        # The supervisor of the child: when it has ended, so has everything below it.
        self._process = process
        self._begun_marks: int | None = begun_marks
        self._lifeline = lifeline
        self._identity = identity
        self._reader = reader
        self._writer = writer
        self._longest = LONGEST_FROM_CHILD
        self.jobs = 0
        self._ended = asyncio.create_task(self._wait_for_end())

    @classmethod
    async def spawn(cls) -> Self:
        """Start a process. It has to `load` before it can run a job."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        begun_marks, marking = os.pipe()
        os.set_blocking(begun_marks, False)
        held, lifeline = os.pipe()
        os.set_blocking(lifeline, False)
        identity = secrets.token_hex(16)
        writer: asyncio.StreamWriter | None = None
        try:
            # A cancel here ends a process that is being started, but none that has been.
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=BUFFER_BYTES)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *SUPERVISOR, str(os.getpid())),
                *map(str, (held, theirs.fileno(), marking)),
                *(*_python(), "-m", PROGRAM),
                stdin=asyncio.subprocess.DEVNULL,
                # Standard output of a worker may be read by a program; prints are for people.
                stdout=2,
                pass_fds=(held, theirs.fileno(), marking),
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
            if isinstance(error, OSError):
                raise ChildDied(f"a child process could not be started: {error}") from error
            raise
        finally:
            theirs.close()
            os.close(marking)
            os.close(held)
        return cls(
            process=process,
            reader=reader,
            writer=writer,
            begun_marks=begun_marks,
            lifeline=lifeline,
            identity=identity,
        )

    @property
    def pid(self) -> int:
        """The process id of its supervisor, which is what the worker has started."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return self._process.returncode is None and not self._reader.at_eof()

    async def load(
        self,
        target: Target,
        *,
        memory_limit: int | None = None,
        payload_limit: int | None = None,
        settings: bytes | None = None,
    ) -> None:
        """Cap the memory, then load the tasks. Raises what loading raised there."""
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
                            # Imports that run out of memory fail in the strangest ways.
                            report.message += f" (memory_limit is {memory_limit:,} bytes)"
                        raise rebuild(report)
                    case Logged() as logged:
                        replay(logged, None)
                    case message:
                        raise ChildDied(f"a child said {message!r} before it was ready")
        except ChannelClosed as error:
            ending = describe_exit(await self._end())
            limit = "" if memory_limit is None else f"; memory_limit is {memory_limit:,} bytes"
            raise ChildDied(
                f"the child process {ending} while it loaded {target.module}{limit}"
            ) from error

    async def run(self, job: ClaimedJob, context: DurableContext) -> Returned | Raised:
        """Run one job. If this raises, the process is of no further use: kill it."""
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
                            "process %d answered run %d while run %d (job %s) is under way; "
                            "dropped",
                            *(self.pid, message.run, self.jobs, job.id),
                        )
                    case _:
                        server.take(message)
        except ChannelClosed as error:
            ending = describe_exit(await self._end())
            kind = ChildDied if self._begun() == self.jobs else ChildNotStarted
            raise kind(f'the child process of task "{job.task}" {ending}') from error
        finally:
            await server.close()

    async def stop(self) -> None:
        """Let an idle process leave politely; end it if it does not."""
        self._send(Stop())
        await asyncio.wait({self._ended}, timeout=LEAVE_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        """End the process and all that was started below it; it is gone when this returns."""
        if not self._ended.done():
            with contextlib.suppress(OSError):
                os.write(self._lifeline, b".")
            await asyncio.wait({self._ended}, timeout=KEEPER_SECONDS)
        if not self._ended.done():
            # Somebody has stopped the supervisor, or the machine stands still.
            log.error("process %d does not end its child; it is ended from here", self.pid)
            await _off_loop(functools.partial(_end_from_here, self.pid))
        await asyncio.shield(self._ended)
        self._writer.transport.abort()
        if self._begun_marks is not None:
            os.close(self._begun_marks)
            self._begun_marks = None
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
                    f"child process {self.pid} announced a message of {length:,} bytes, where "
                    f"{self._longest:,} are the most, and was ended; {STRAY}"
                )
            body = await self._reader.readexactly(length)
        except (EOFError, OSError) as error:
            raise ChannelClosed from error
        try:
            return decode_from_child(body)
        except msgspec.DecodeError as error:
            raise ChildDied(
                f"child process {self.pid} sent what is no message and was ended ({error}); {STRAY}"
            ) from error

    def _begun(self) -> int:
        """How many jobs it had begun when it died: it leaves a mark for each."""
        if self._begun_marks is None:
            return self.jobs  # we have killed it ourselves
        try:
            return len(os.read(self._begun_marks, self.jobs + 1))
        except BlockingIOError:
            return 0

    async def _end(self) -> int | None:
        """The line is closed, so the process is about to end: tell how."""
        await asyncio.wait({self._ended}, timeout=END_SECONDS + DRAIN_SECONDS)
        return self._process.returncode

    async def _wait_for_end(self) -> None:
        if await self._process.wait() == -signal.SIGKILL:
            # Perhaps it was the supervisor that was killed. The child ends with it, by itself.
            await _off_loop(functools.partial(end_all, functools.partial(marked, self._identity)))
        os.close(self._lifeline)
        # What it has sent is read first, unless something that it started holds the line open.
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._writer.transport.abort)


async def _off_loop(call: Callable[[], object]) -> None:
    """Call what ends processes, in a thread of its own: those of the loop are for everybody, and
    handlers may hang in all of them.
    """
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def work() -> None:
        try:
            call()
        except Exception:
            log.exception("processes that a handler started may be left")
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(over.set)

    try:
        threading.Thread(target=work, name="headrace-end", daemon=True).start()
    except RuntimeError:  # there are no more threads: the loop has to wait for it
        work()
    await over.wait()


def _end_from_here(supervisor: int) -> None:
    """End a supervisor and what is below it. What gets away meanwhile is found by its mark."""
    below = descendants(supervisor)
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor, signal.SIGKILL)
    end_all(lambda: {pid: began for pid, began in below.items() if exists(pid, began)})


def _python() -> list[str]:
    """The interpreter. It does not look for modules in the current folder, where a file that is
    called `logging.py` would be in the way, unless that is where Headrace is.
    """
    home = Path(__file__).parents[3]
    return [sys.executable] if home == Path.cwd() else [sys.executable, "-P"]


def _run(number: int, job: ClaimedJob, context: DurableContext) -> RunJob:
    fields: dict[str, Any] = {
        name: getattr(context, name)
        for name in ("job_id", "queue", "attempt", "max_attempts", "token", "key", "lane")
    }
    level = context.log.getEffectiveLevel()
    return RunJob(run=number, task=job.task, args=job.args, level=level, **fields)
