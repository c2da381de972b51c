"""The child's end of the channel. It reads in a thread of its own, however busy the handler is.

Only the process that was started as the child uses it. In a copy that a handler forks, the channel
is closed. A copy that was forked outside of Python's sight still has it, and is refused when it
sends. Every copy is ended when it returns from the handler.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError
from headrace.orchestrator.isolation.child.resource_limits import end_group, uncapped
from headrace.orchestrator.isolation.error_transport import rebuild
from headrace.orchestrator.isolation.errors import ForkedCopy, MessageTooLong
from headrace.orchestrator.isolation.protocol import (
    HEADER,
    LONGEST_FROM_CHILD,
    LONGEST_FROM_WORKER,
    Cancel,
    FromChild,
    FromWorker,
    Progress,
    ProgressSeen,
    Reply,
    RunJob,
    Start,
    Stop,
    ask,
    decode_from_worker,
    frame,
)

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing

# After a stop, threads that a handler has left behind have so long to end.
LEAVE_SECONDS = 2.0


class ChildChannel:
    """Sends from any thread; reads in one of its own.

    `run` is the number of the present run, 0 between two. Anything that is sent for another run
    comes from a thread that an earlier job has left behind, and is dropped.
    """

    def __init__(self, connection: socket.socket, begun_marks: int) -> None:
        self._connection = connection
        self._begun_marks = begun_marks
        self._home = os.getpid()
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[int, Future[bytes]]] = {}
        self._progress = _LatestProgress(0, self.send)
        self.longest = LONGEST_FROM_CHILD
        self.runs: queue.SimpleQueue[RunJob | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        self.run = 0
        # What makes spans, where the worker does.
        self.tracing: Tracing | None = None
        os.register_at_fork(after_in_child=self._close_in_copy)

    @property
    def forked(self) -> bool:
        """Whether this process is a copy of the child that a handler has forked."""
        return os.getpid() != self._home

    def leave_if_forked(self, error: BaseException | None = None) -> None:
        """Exit if this is a forked copy: what follows the handler is for the child alone."""
        if not self.forked:
            return
        code = 1
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            code = error.code or 0  # sys.exit: the proper way for a copy to end
        else:
            if error is not None:
                traceback.print_exception(error)
            print(
                f"process {os.getpid()}, which a handler forked, came back from the handler and "
                "ends here; let it end by itself: sys.exit",
                file=sys.stderr,
            )
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    def start(self) -> Start:
        """Return the first message, then read the others in a thread."""
        message = self._receive()
        if not isinstance(message, Start):
            raise HeadraceError(f"a child was sent {type(message).__name__} before Start")
        self.longest = message.longest
        threading.Thread(target=self._read, name="headrace-channel", daemon=True).start()
        return message

    def send(self, message: FromChild) -> None:
        """Send one message whole."""
        if self.forked:  # before the lock: a thread of the child may have held it at the fork
            raise ForkedCopy(
                f"process {os.getpid()} was forked by a handler and has no context; "
                f"use the context in process {self._home} only"
            )
        data = frame(message, self.longest)
        with self._sending:
            self._connection.sendall(data)

    def begin(self) -> None:
        """Mark that a job has begun. The worker reads the marks only if this process dies."""
        os.write(self._begun_marks, b".")

    def progress(self, progress: Progress) -> None:
        """Send the latest progress. While one is on its way, only the latest of others follows."""
        latest = self._progress
        if progress.run == latest.run:
            latest.put(progress)

    def finish(self, message: FromChild) -> None:
        """Send the end of a job, after its last progress."""
        self._progress.flush()
        ended, self.run = self.run, 0
        self.send(message)
        for number, (run, future) in list(self._waiting.items()):
            if run == ended and self._waiting.pop(number, None) is not None:
                future.set_exception(_over())

    def number(self) -> int:
        """Return a number for what the worker is asked to do in several steps."""
        return next(self._numbers)

    async def ask(self, run: int, method: str, *arguments: Any) -> bytes:
        """Call a method of the worker and return its reply. Raise what the method raised."""
        return await asyncio.wrap_future(self._asked(run, method, arguments))

    def ask_now(self, run: int, method: str, *arguments: Any) -> bytes:
        """The same for code that cannot await. It blocks for one round trip to the worker, which
        answers without waiting for the engine.
        """
        return self._asked(run, method, arguments).result()

    def _asked(self, run: int, method: str, arguments: tuple[Any, ...]) -> Future[bytes]:
        if run != self.run:
            raise _over()
        number = next(self._numbers)
        future: Future[bytes] = Future()
        # It cannot be cancelled: a reply that nobody waits for any more is dropped.
        future.set_running_or_notify_cancel()
        self._waiting[number] = run, future
        try:
            self.send(ask(run, number, method, arguments, self._trace()))
        except BaseException:
            self._waiting.pop(number, None)
            raise
        return future

    def tell(self, run: int, method: str, *arguments: Any) -> None:
        """Call a method of the worker without waiting for it."""
        self.send(ask(run, 0, method, arguments, self._trace()))

    def _trace(self) -> dict[str, str]:
        return {} if self.tracing is None else self.tracing.current()

    def _read(self) -> None:
        try:
            while True:
                self._take(self._receive())
        except (EOFError, OSError):
            # The worker is gone, and with it the use of what the handler does.
            end_group()
        except BaseException:
            with uncapped():
                traceback.print_exc()
                end_group()

    def _take(self, message: FromWorker) -> None:
        match message:
            case RunJob():
                if self.run:
                    raise HeadraceError(f"run {message.run} came before the end of {self.run}")
                self.run = message.run
                self.cancelled = threading.Event()
                self._progress = _LatestProgress(message.run, self.send)
                self.runs.put(message)
            case Cancel(run):
                if run == self.run:
                    self.cancelled.set()
            case ProgressSeen(run):
                if run == self._progress.run:
                    self._progress.seen()
            case Reply():
                self._replied(message)
            case Stop():
                self.runs.put(None)
                time.sleep(LEAVE_SECONDS)
                os._exit(0)
            case Start():
                raise HeadraceError("a child was started twice")

    def _replied(self, reply: Reply) -> None:
        """Give a reply to the caller that waits for it, if one of that run still does."""
        run, future = self._waiting.get(reply.number, (0, None))
        if future is None or run != reply.run or self._waiting.pop(reply.number, None) is None:
            return
        if reply.report is None:
            future.set_result(reply.value)
        else:
            future.set_exception(rebuild(reply.report))

    def _close_in_copy(self) -> None:
        """In a forked copy: it must not hold the channel open, nor write to it by accident."""
        self._connection.close()
        os.close(self._begun_marks)

    def _receive(self) -> FromWorker:
        (length,) = HEADER.unpack(self._exactly(HEADER.size))
        if length > LONGEST_FROM_WORKER:
            raise MessageTooLong(f"the worker announced a message of {length:,} bytes")
        return decode_from_worker(self._exactly(length))

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._connection.recv_into(view)
            if not count:
                raise EOFError("the worker has closed the channel")
            view = view[count:]
        return data


def _over() -> HeadraceError:
    return HeadraceError("the attempt that asks is over")


class _LatestProgress:
    """Progress of one run: one is on its way at a time, and the latest follows."""

    def __init__(self, run: int, send: Callable[[FromChild], None]) -> None:
        self.run = run
        self._send = send
        self._lock = threading.Lock()
        self._in_flight = False
        self._next: Progress | None = None

    # Sent under the lock: nothing of a job may follow its end.

    def put(self, progress: Progress) -> None:
        with self._lock:
            if self._in_flight:
                self._next = progress
            else:
                self._in_flight = True
                self._send(progress)

    def seen(self) -> None:
        with self._lock:
            self._in_flight = False
            self._send_next()

    def flush(self) -> None:
        with self._lock:
            self._send_next()

    def _send_next(self) -> None:
        if self._next is not None:
            progress, self._next = self._next, None
            self._in_flight = True
            self._send(progress)
