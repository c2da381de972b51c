"""What every part of the engine stands on: the connection, the clock, and how a script is run."""

from __future__ import annotations

from typing import Any

from headrace.clock import Clock
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import Part
from headrace.engine.redis.connection.errors import ScriptUnknown
from headrace.engine.redis.connection.idle import IdleConnection
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.scripts import Script, script


class RedisStore:
    """A namespace on a server. One script is one atomic step."""

    def __init__(self, url: str, *, clock: Clock, migrate: bool = True) -> None:
        self.clock = clock
        self._may_migrate = migrate
        self.address = RedisAddress.parse(url)
        self._link = RedisConnection(self.address)
        # For answers that are so long that nothing else should wait behind them.
        self._large = IdleConnection(self.address)
        self._calls: dict[str, tuple[Part, ...]] = {}

    async def run(self, verb: str, *arguments: Part) -> Any:
        """Run a script and answer what it answers."""
        return await self.run_by(self._link, verb, *arguments)

    async def run_by(
        self, link: RedisConnection | IdleConnection, verb: str, *arguments: Part
    ) -> Any:
        """Run a script by another connection than that of most verbs."""
        head = self._calls.get(verb)
        if head is None:
            head = self._calls[verb] = call_of(script(verb), self.address)
        command = (*head, self.offset, *arguments)
        try:
            return await link.call(*command)
        except ScriptUnknown:
            # Nothing ran. The server is new, was restarted, or somebody flushed its scripts.
            return await link.call_with(script(verb).source, *command)

    def key(self, name: str) -> str:
        """The full name of a key."""
        return self.address.prefix + name

    @property
    def offset(self) -> str:
        """What the clock adds to the server's time, as scripts read it."""
        return repr(self.clock.offset)


def call_of(verb: Script, address: RedisAddress) -> tuple[Part, ...]:
    """The beginning of every call of a script: which one, and every key it may touch."""
    keys = [address.prefix + key for key in verb.keys]
    return ("EVALSHA", verb.sha, len(keys), *keys)
