"""Hearing of work and of cancels, on a connection of its own that heals."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from headrace.engine.base import CancelSignal, JobsSignal, WorkSignal
from headrace.engine.redis.claim import handed_over
from headrace.engine.redis.connection.connection import RedisProtocol
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.connection.nodes import Nodes
from headrace.errors import EngineError
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob

_LONGEST_PAUSE = 5.0
_CHECK_SECONDS = 5.0


class SignalListener:
    """Subscribes while anybody listens; calls everybody who does."""

    def __init__(self, link: RedisConnection, channel: str) -> None:
        # That of the verbs: signals are listened to where they are called.
        self._link = link
        self._address = link.address
        self._nodes = Nodes(link.address)
        self._channel = channel
        # Where jobs arrive that are handed to workers of this process.
        self._inbox = f"{channel}:{new_id()}"
        self._inbox_key = self._inbox.encode()
        self._listeners: dict[object, tuple[WorkSignal, CancelSignal, JobsSignal | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()
        self._tried = asyncio.Event()

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""
        return self._subscribed.is_set()

    @property
    def inbox(self) -> str:
        """Where a job may be handed over now; nowhere if nobody would take it. In a cluster all
        nodes pass on what is published, but the script hears only of those who listen where it
        runs: it would take a job that was handed over for one that was not.
        """
        if self._address.kind == "cluster":
            return ""
        wanted = any(on_jobs is not None for _, _, on_jobs in self._listeners.values())
        return self._inbox if wanted and self.listening else ""

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        """Start to listen; comes back when signals arrive, or when a first try has failed."""
        handle = object()
        self._listeners[handle] = (on_work, on_cancel, on_jobs)
        if self._task is None:
            self._tried.clear()
            self._task = asyncio.create_task(self._run(), name="headrace-redis-signals")
        try:
            await self._tried.wait()
        except BaseException:
            self._stop(handle)
            raise
        return lambda: self._stop(handle)

    async def close(self) -> None:
        """Stop listening altogether."""
        self._listeners.clear()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _stop(self, handle: object) -> None:
        self._listeners.pop(handle, None)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None
            self._subscribed.clear()

    async def _run(self) -> None:
        pause, healing = 0.1, False
        while True:
            try:
                wire = await self._nodes.open(self._heard)
            except EngineError:
                healing = True
            else:
                pause = 0.1
                try:
                    await self._follow(wire, healing)
                finally:
                    self._subscribed.clear()
                    wire.abort()
                healing = True
            self._tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _follow(self, wire: RedisProtocol, healing: bool) -> None:
        """Subscribe, and stay until the connection is lost or has fallen silent."""
        wire.send(("SUBSCRIBE", self._channel, self._inbox))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._subscribed.wait(), self._address.timeout)
        self._tried.set()
        if not self._subscribed.is_set():
            return
        if healing:
            # Whatever was said meanwhile is lost: let everybody look once.
            self._work()
            self._jobs("", [])
        while wire.open_now and wire.silence < 2 * _CHECK_SECONDS:
            wire.send(("PING",))
            await asyncio.wait([wire.closed], timeout=_CHECK_SECONDS)
            if self._link.node not in (None, wire.address):
                return  # the store has moved

    def _heard(self, reply: Any) -> None:
        match reply:
            case [b"message", self._inbox_key, bytes(text)]:
                worker_id, job = handed_over(text)
                self._jobs(worker_id, [job])
            case [b"message", _, b"work"]:
                self._work()
            case [b"message", _, bytes(text)] if text.startswith(b"cancel:"):
                job_id = text[7:].decode()
                for _, on_cancel, _ in tuple(self._listeners.values()):
                    on_cancel(job_id)
            case [b"subscribe", _, 2]:
                self._subscribed.set()

    def _work(self) -> None:
        for on_work, _, _ in tuple(self._listeners.values()):
            on_work()

    def _jobs(self, worker_id: str, jobs: list[ClaimedJob]) -> None:
        for _, _, on_jobs in tuple(self._listeners.values()):
            if on_jobs is not None:
                on_jobs(worker_id, jobs)
