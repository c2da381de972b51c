"""A connection for what is seldom needed: it closes again when nobody has used it for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import Part
from headrace.engine.redis.connection.link import RedisConnection

IDLE_SECONDS = 10.0


class IdleConnection:
    """Like `RedisConnection`. Invariant: no timer runs during a call, and the timer takes the
    connection away from further callers before it closes it.
    """

    def __init__(self, address: RedisAddress, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self._address = address
        self._link = RedisConnection(address)
        self._shut = False
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def call(self, *command: Part) -> Any:
        """Send a command and wait for its answer."""
        return await self._used(self._link.call(*command))

    async def call_with(self, script: str, *command: Part) -> Any:
        """As that of `RedisConnection`."""
        return await self._used(self._link.call_with(script, *command))

    async def _used(self, call: Awaitable[Any]) -> Any:
        self._users += 1
        self._stop_timer()
        try:
            return await call
        finally:
            self._users -= 1
            if self._users == 0 and not self._shut:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self.idle_seconds, self._close_when_idle)

    def reopen(self) -> None:
        """Allow use again after `close`."""
        self._shut = False
        self._link.reopen()

    async def close(self) -> None:
        """Finish and hang up."""
        self._shut = True
        self._stop_timer()
        await self._link.close()
        if self._closing:
            await asyncio.wait(self._closing)

    def _close_when_idle(self) -> None:
        self._timer = None
        idle, self._link = self._link, RedisConnection(self._address)
        task = asyncio.get_running_loop().create_task(idle.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
