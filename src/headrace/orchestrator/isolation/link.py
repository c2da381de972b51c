"""The child's end of the line. A thread of its own reads, so that a busy handler is no matter."""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import socket
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future

from headrace.errors import HeadraceError
from headrace.orchestrator.isolation.failures import rebuild
from headrace.orchestrator.isolation.limits import end_group, uncapped
from headrace.orchestrator.isolation.messages import (
    HEADER,
    Answer,
    Cancel,
    FromChild,
    FromWorker,
    Progress,
    ProgressSeen,
    Question,
    Run,
    RunStage,
    Start,
    Stop,
    decode_from_worker,
    frame,
)

# After a polite stop, threads that a handler has left behind may take so long.
LEAVE_SECONDS = 2.0


class Link:
    """Sends from any thread; reads on its own."""

    def __init__(self, connection: socket.socket, marks: int) -> None:
        self._connection = connection
        self._marks = marks
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[bytes | None]] = {}
        self._progress = _LatestProgress(self.send)
        self.runs: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()

    def start(self) -> Start:
        """Wait for the first message, then read on in a thread."""
        message = self._receive()
        if not isinstance(message, Start):
            raise HeadraceError(f"a child was sent {type(message).__name__} before Start")
        threading.Thread(target=self._read, name="headrace-link", daemon=True).start()
        return message

    def send(self, message: FromChild) -> None:
        """Send one message whole."""
        data = frame(message)
        with self._sending:
            self._connection.sendall(data)

    def begin(self) -> None:
        """Leave a mark that a job has begun. It wakes nobody; it is looked for if we die."""
        os.write(self._marks, b".")

    def progress(self, progress: Progress) -> None:
        """Send the latest progress; those between two that the worker takes are left out."""
        self._progress.put(progress)

    def finish(self, message: FromChild) -> None:
        """Send the end of a job, after the last that it told."""
        self._progress.flush()
        self.send(message)

    def number(self) -> int:
        """A number for a question."""
        return next(self._numbers)

    async def ask(self, question: Question) -> bytes | None:
        """Send a question and wait. None means: run the stage. Raises what the worker raised."""
        future: Future[bytes | None] = Future()
        # It cannot be cancelled: the answer comes anyway, and nobody minds.
        future.set_running_or_notify_cancel()
        self._waiting[question.number] = future
        self.send(question)
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
            case Run():
                self.cancelled = threading.Event()
                self.runs.put(message)
            case Cancel():
                self.cancelled.set()
            case ProgressSeen():
                self._progress.seen()
            case Answer(number, value, report):
                future = self._waiting.pop(number, None)
                if future is not None and report is not None:
                    future.set_exception(rebuild(report))
                elif future is not None:
                    future.set_result(value)
            case RunStage(number):
                future = self._waiting.pop(number, None)
                if future is not None:
                    future.set_result(None)
            case Stop():
                self.runs.put(None)
                time.sleep(LEAVE_SECONDS)
                os._exit(0)
            case Start():
                raise HeadraceError("a child was started twice")

    def _receive(self) -> FromWorker:
        (length,) = HEADER.unpack(self._exactly(HEADER.size))
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


class _LatestProgress:
    """At most one progress is on its way; the latest follows when it has been taken."""

    def __init__(self, send: Callable[[FromChild], None]) -> None:
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
