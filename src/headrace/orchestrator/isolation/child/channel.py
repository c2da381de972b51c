"""The child's end of the line. A thread of its own reads, so that a busy handler is no matter.

Only the process that was started as the child talks on it. A copy that a handler forks loses the
line as it is made, is refused when it speaks all the same (libraries fork where Python does not
hear of it), and ends as soon as it comes back from the handler.
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
    Question,
    Reply,
    RunJob,
    RunStage,
    Start,
    Stop,
    decode_from_worker,
    frame,
)

# After a polite stop, threads that a handler has left behind may take so long.
LEAVE_SECONDS = 2.0


class ChildChannel:
    """Sends from any thread; reads on its own.

    `run` is the number of the run that is under way, 0 between two. Who asks or tells something for
    another run is a thread that an earlier job has left behind: it is not heard.
    """

    def __init__(self, connection: socket.socket, begun_marks: int) -> None:
        self._connection = connection
        self._begun_marks = begun_marks
        self._home = os.getpid()
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[int, Future[bytes | None]]] = {}
        self._progress = _LatestProgress(0, self.send)
        self.longest = LONGEST_FROM_CHILD
        self.runs: queue.SimpleQueue[RunJob | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        self.run = 0
        os.register_at_fork(after_in_child=self._let_go)

    @property
    def forked(self) -> bool:
        """Whether this process is a copy of the child, which a handler has made."""
        return os.getpid() != self._home

    def leave_if_forked(self, error: BaseException | None = None) -> None:
        """End a copy that has come back from its handler: its way on is the child's alone."""
        if not self.forked:
            return
        code = 1
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            code = error.code or 0  # which is how a copy ends in good order
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
        """Wait for the first message, then read on in a thread."""
        message = self._receive()
        if not isinstance(message, Start):
            raise HeadraceError(f"a child was sent {type(message).__name__} before Start")
        self.longest = message.longest
        threading.Thread(target=self._read, name="headrace-link", daemon=True).start()
        return message

    def send(self, message: FromChild) -> None:
        """Send one message whole."""
        if self.forked:  # before the lock: a thread that is not in the copy may have had it
            raise ForkedCopy(
                f"process {os.getpid()} was forked by a handler and has no context; "
                f"hand what it has to tell to process {self._home}"
            )
        data = frame(message, self.longest)
        with self._sending:
            self._connection.sendall(data)

    def begin(self) -> None:
        """Leave a mark that a job has begun. It wakes nobody; it is looked for if we die."""
        os.write(self._begun_marks, b".")

    def progress(self, progress: Progress) -> None:
        """Send the latest progress; those between two that the worker takes are left out."""
        latest = self._progress
        if progress.run == latest.run:
            latest.put(progress)

    def finish(self, message: FromChild) -> None:
        """Send the end of a job, after the last that it told."""
        self._progress.flush()
        ended, self.run = self.run, 0
        self.send(message)
        for number, (run, future) in list(self._waiting.items()):
            if run == ended and self._waiting.pop(number, None) is not None:
                future.set_exception(_over())

    def number(self) -> int:
        """A number for a question."""
        return next(self._numbers)

    async def ask(self, question: Question) -> bytes | None:
        """Send a question and wait. None means: run the stage. Raises what the worker raised."""
        if question.run != self.run:
            raise _over()
        future: Future[bytes | None] = Future()
        # It cannot be cancelled: the answer comes anyway, and nobody minds.
        future.set_running_or_notify_cancel()
        self._waiting[question.number] = question.run, future
        try:
            self.send(question)
        except BaseException:
            self._waiting.pop(question.number, None)
            raise
        return await asyncio.wrap_future(future)

    def _read(self) -> None:
        try:
            while True:
                self._take(self._receive())
        except (EOFError, OSError):
            # The worker is gone: nobody would ever read what the handler is working for.
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
            case Reply(run, number, value, report):
                self._answer(run, number, value, None if report is None else rebuild(report))
            case RunStage(run, number):
                self._answer(run, number, None)
            case Stop():
                self.runs.put(None)
                time.sleep(LEAVE_SECONDS)
                os._exit(0)
            case Start():
                raise HeadraceError("a child was started twice")

    def _answer(
        self, run: int, number: int, value: bytes | None, error: BaseException | None = None
    ) -> None:
        """Tell whoever waits for this, if anybody of that run still does."""
        asked, future = self._waiting.get(number, (0, None))
        if future is None or asked != run or self._waiting.pop(number, None) is None:
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def _let_go(self) -> None:
        """In a copy, as it is made: it must not hold the line open, nor write to it by accident."""
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
                raise EOFError("the worker has closed the line")
            view = view[count:]
        return data


def _over() -> HeadraceError:
    return HeadraceError("the attempt that asks is over")


class _LatestProgress:
    """Of one run: at most one progress is on its way; the latest follows when it was taken."""

    def __init__(self, run: int, send: Callable[[FromChild], None]) -> None:
        self.run = run
        self._send = send
        self._lock = threading.Lock()
        self._travelling = False
        self._next: Progress | None = None

    # Sent under the lock: nothing of a job may follow its end.

    def put(self, progress: Progress) -> None:
        with self._lock:
            if self._travelling:
                self._next = progress
            else:
                self._travelling = True
                self._send(progress)

    def seen(self) -> None:
        with self._lock:
            self._travelling = False
            self._send_next()

    def flush(self) -> None:
        with self._lock:
            self._send_next()

    def _send_next(self) -> None:
        if self._next is not None:
            progress, self._next = self._next, None
            self._travelling = True
            self._send(progress)
