"""A ticket: by it somebody asks a connection's thread for work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable
from typing import Any


class ThreadRequest:
    """One operation and where its answer goes: to an event loop, or to a thread that waits."""

    __slots__ = ("_loop", "_reply", "error", "operation", "value")

    def __init__(
        self,
        operation: Callable[[Any], Any],
        loop: asyncio.AbstractEventLoop | None,
        reply: asyncio.Future[Any] | concurrent.futures.Future[Any],
    ) -> None:
        self.operation = operation
        self.value: Any = None
        self.error: BaseException | None = None
        self._loop = loop
        self._reply = reply

    def _answer(self) -> None:
        if self._reply.done():
            return  # whoever asked was cancelled; what was committed stays
        if self.error is None:
            self._reply.set_result(self.value)
        else:
            self._reply.set_exception(self.error)

    @staticmethod
    def answer_all(requests: list[ThreadRequest]) -> None:
        """Hand out the answers, waking each event loop once."""
        loops: dict[asyncio.AbstractEventLoop, list[ThreadRequest]] = {}
        for request in requests:
            if request._loop is None:
                request._answer()
            else:
                loops.setdefault(request._loop, []).append(request)
        for loop, group in loops.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is waiting
                loop.call_soon_threadsafe(_answer_group, group)


def _answer_group(requests: list[ThreadRequest]) -> None:
    for request in requests:
        request._answer()
