"""The connection that a caller need not care for: opened on first use, and again if lost.

Where the store moves from node to node, a node that has it no more says so instead of running
anything. Then the connection is made anew, and what was refused is sent once more.
"""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import Part, RedisProtocol
from headrace.engine.redis.connection.errors import Elsewhere
from headrace.engine.redis.connection.nodes import Nodes
from headrace.errors import EngineError, EngineUnavailable

# How often sentinels are asked whether the master is another one.
_CHECK_SECONDS = 1.0


class RedisConnection:
    """One connection for all callers. Without `watch`, whoever uses it says where to go."""

    def __init__(self, address: RedisAddress, *, watch: bool = True) -> None:
        self.address = address
        self._watches = watch and address.kind == "sentinel"
        self._nodes = Nodes(address)
        self._wire: RedisProtocol | None = None
        self._opening: asyncio.Lock | None = None
        self._tries = 0
        self._failure: EngineError | None = None
        self._left: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._closing: RedisProtocol | None = None
        self._shut = False

    @property
    def node(self) -> RedisAddress | None:
        """Which server this is connected to, if any."""
        wire = self._wire  # a lease's thread asks, too
        return wire.address if wire is not None and wire.open_now else None

    def go_with(self, other: RedisConnection) -> None:
        """Leave a server that another connection to the store has left."""
        wire = self._wire
        if wire is not None and wire.open_now and other.node not in (None, wire.address):
            self._leave(wire)

    async def wire(self) -> RedisProtocol:
        """The open connection. Callers that come together share one, or why there is none."""
        if self._wire is not None and self._wire.open_now:
            return self._wire
        if self._shut:
            raise EngineUnavailable("the engine is closed; call open() first")
        if self._opening is None:
            self._opening = asyncio.Lock()
        tries = self._tries
        async with self._opening:
            if self._wire is None or not self._wire.open_now:
                if self._tries != tries and self._failure is not None:
                    # Finding a node may take long: many would do so one after the other.
                    raise type(self._failure)(*self._failure.args) from self._failure
                self._wire = await self._open()
            return self._wire

    async def _open(self) -> RedisProtocol:
        self._failure = None
        try:
            wire = await self._nodes.open()
        except EngineError as error:
            self._failure = error
            raise
        finally:
            self._tries += 1
        if self._watches:
            # One that watched another connection has ended, or will with its next look.
            self._watching = asyncio.get_running_loop().create_task(self._watch(wire))
        return wire

    async def _watch(self, wire: RedisProtocol) -> None:
        """Leave a master that sentinels have replaced. It may be alive, for instance if only they
        could not reach it: for seconds it would take what nobody will ever see again.
        """
        while wire.open_now:
            await asyncio.wait([wire.closed], timeout=_CHECK_SECONDS)
            if wire.open_now and await self._nodes.replaced(wire.address):
                self._leave(wire)
                return

    async def call(self, *command: Part) -> Any:
        """Send a command and wait for its answer."""
        wire = self._wire
        if wire is None or not wire.open_now:
            wire = await self.wire()
        try:
            return await wire.call(command)
        except Elsewhere as told:
            return await self._once_more(wire, told, command)

    async def call_packed(self, commands: bytes, *, unheard: int) -> Any:
        """As that of `RedisProtocol`."""
        wire = self._wire
        if wire is None or not wire.open_now:
            wire = await self.wire()
        try:
            return await wire.call_packed(commands, unheard=unheard)
        except Elsewhere as told:
            wire = await self._follow(wire, told)
            return await wire.call_packed(commands, unheard=unheard)

    async def call_with(self, script: str, *command: Part) -> Any:
        """Send a script that the server does not have, and the command that needs it once more:
        also while this is being closed, because the command was accepted before.
        """
        wire = self._closing or await self.wire()
        load = ("SCRIPT", "LOAD", script)
        await wire.call(load)
        try:
            return await wire.call(command)
        except Elsewhere as told:
            return await self._once_more(wire, told, load, command)

    async def _once_more(
        self, wire: RedisProtocol, told: Elsewhere, *commands: tuple[Part, ...]
    ) -> Any:
        """Send commands to the node that was named; return the answer to the last."""
        if told.asking is not None:
            return await self._nodes.ask(told.asking, *commands)
        wire = await self._follow(wire, told)
        *before, last = commands
        for command in before:
            await wire.call(command)
        return await wire.call(last)

    async def _follow(self, wire: RedisProtocol, told: Elsewhere) -> RedisProtocol:
        """The connection to the node that has the store now."""
        if self._wire is wire and told.moved is not None:
            self._nodes.moved_to(told.moved)
        self._leave(wire)
        if not self.address.follows or told.asking is not None:
            raise told
        return await self.wire()

    def _leave(self, wire: RedisProtocol) -> None:
        """Give the connection to nobody any more. Some wait for answers, which are on their way."""
        if self._wire is wire:
            self._wire = None
            task = asyncio.get_running_loop().create_task(wire.close())
            self._left.add(task)
            task.add_done_callback(self._left.discard)

    def reopen(self) -> None:
        """Allow use again after `close`."""
        self._shut = False

    async def close(self) -> None:
        """Finish and hang up."""
        self._shut = True
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        wire, self._wire = self._wire, None
        try:
            if wire is not None:
                self._closing = wire
                await wire.close()
        finally:
            self._closing = None
            if self._left:
                await asyncio.wait(self._left)
