"""Giving up what takes too long."""

from __future__ import annotations

import asyncio


class Deadline:
    """For uses of a connection, one at a time. One timer looks after all of them: a timer that is
    made and cancelled for every statement takes longer than all else that is done for it here.
    """

    __slots__ = ("_cancels", "_passed", "_task", "_timer", "_until")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._passed = False
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0

    def begin(self, seconds: float) -> None:
        """From now on the present task has so many seconds, whatever it had before."""
        loop = asyncio.get_running_loop()
        task = self._task = asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self._passed = False
        self._until = loop.time() + seconds
        if self._timer is None or self._timer.when() > self._until:
            self.forget()
            self._timer = loop.call_at(self._until, self._look)

    def end(self) -> None:
        """It was done in time, or not: nothing is waited for any more."""
        if self._passed and self._task is not None:
            self._task.uncancel()
        self._task, self._passed = None, False

    def told(self, error: BaseException) -> BaseException:
        """The error that ended it: TimeoutError if it was the deadline that cancelled it."""
        if not self._passed or self._task is None:
            return error
        self._passed = False
        # If somebody else has cancelled the task as well, then that counts.
        others = self._task.uncancel() > self._cancels
        return error if others or not isinstance(error, asyncio.CancelledError) else TimeoutError()

    def forget(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._task is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._until:
            self._timer = loop.call_at(self._until, self._look)
        else:
            self._passed = True
            self._task.cancel()
