"""Which node has the store now: one server, the master that sentinels name, or the master of the
store's slot in a cluster.

Whoever is asked may be wrong for a moment, so a node is used only if it says itself that it is a
master; and if it is the wrong one of a cluster, it says so before it runs anything.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from headrace.engine.redis.connection.address import Host, RedisAddress
from headrace.engine.redis.connection.connection import Part, Pushed, RedisProtocol
from headrace.engine.redis.connection.errors import (
    WrongKind,
    no_cluster,
    no_master,
    no_sentinel,
    nobody,
    not_served,
    refused_by_sentinel,
)
from headrace.errors import EngineError, EngineRefused, EngineUnavailable

# After the first answer: for those who know better.
_GRACE_SECONDS = 0.2
# Nodes of a cluster that are asked at once, of those that no URL names.
_FEW = 8


class Nodes:
    """Opens connections to the node that has the store."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._moved: Host | None = None
        self._known: tuple[Host, ...] = ()

    def moved_to(self, host: Host) -> None:
        """Look there first, as a node has said."""
        self._moved = host

    async def open(self, on_push: Pushed | None = None) -> RedisProtocol:
        """Connect. Raises `EngineUnavailable` also while no master is to be found."""
        if not self._address.follows:
            return await RedisProtocol.open(self._address, on_push)
        moved, self._moved = self._moved, None
        if moved is not None:
            try:
                return await self._open_master(moved, on_push)
            except EngineUnavailable:
                pass  # it is gone, too: the others know where to
        failure: EngineError = nobody(self._address, [])
        for host in await self._masters():
            try:
                return await self._open_master(host, on_push)
            except EngineUnavailable as error:
                failure = error
        raise failure

    async def replaced(self, master: RedisAddress) -> bool:
        """Whether sentinels name another master; False if they cannot be asked."""
        try:
            newest, *_ = await self._masters_by_sentinels()
        except EngineError:
            return False
        return newest != (master.host, master.port)

    async def ask(self, host: Host, *commands: tuple[Part, ...]) -> Any:
        """Send commands to the node that a slot is on its way to; return the last answer."""
        wire = await RedisProtocol.open(self._address.at(host))
        try:
            *before, last = commands
            for command in before:
                await wire.call(command)
            allowed, answer = wire.call(("ASKING",)), wire.call(last)
            await allowed
            return await answer
        finally:
            await wire.close()

    async def _open_master(self, host: Host, on_push: Pushed | None) -> RedisProtocol:
        wire = await RedisProtocol.open(self._address.at(host), on_push)
        if wire.server.get("role") == "master":
            return wire
        wire.abort()
        raise EngineUnavailable(
            f"Redis at {wire.address} is no master (any more), and no other has been chosen yet: "
            "a fail-over may be under way"
        )

    async def _masters(self) -> list[Host]:
        """Who may be the master, the likeliest first."""
        if self._address.kind == "sentinel":
            return await self._masters_by_sentinels()
        try:
            return await self._masters_by_nodes(self._address.hosts)
        except EngineUnavailable:
            others = [each for each in self._known if each not in self._address.hosts]
            if not others:
                raise
            return await self._masters_by_nodes(random.sample(others, min(_FEW, len(others))))

    async def _masters_by_sentinels(self) -> list[Host]:
        address = self._address
        told = await _ask_all(
            address, [address.sentinel(host) for host in address.hosts], _master_of(address)
        )
        epochs: dict[Host, int] = {}
        for _, answer in told:
            texts = [part.decode() for part in answer]
            says = dict(zip(texts[::2], texts[1::2], strict=False))
            host = (says["ip"], int(says["port"]))
            epochs[host] = max(epochs.get(host, 0), int(says.get("config-epoch", 0)))
        return sorted(epochs, key=lambda host: -epochs[host])

    async def _masters_by_nodes(self, hosts: Sequence[Host]) -> list[Host]:
        address = self._address
        told = await _ask_all(address, [address.at(host) for host in hosts], ("CLUSTER", "SLOTS"))
        votes: Counter[Host] = Counter()
        known: dict[Host, None] = {}
        for asked, ranges in told:
            for first, last, *nodes in ranges:
                named = [_host_of(node, asked) for node in nodes]
                known.update(dict.fromkeys(named))
                if first <= address.slot <= last:
                    votes[named[0]] += 1
        self._known = tuple(known)
        if not votes:
            raise not_served(address)
        return [host for host, _ in votes.most_common()]


def _master_of(address: RedisAddress) -> tuple[Part, ...]:
    return ("SENTINEL", "MASTER", address.master)


def _host_of(node: list[Any], asked: RedisAddress) -> Host:
    """A node as CLUSTER SLOTS shows it. One that does not know its own address has that by which
    it was reached.
    """
    host = node[0].decode() if isinstance(node[0], bytes) else ""
    return (host if host not in ("", "?") else asked.host, int(node[1]))


async def _ask_all(
    store: RedisAddress, addresses: Sequence[RedisAddress], question: tuple[Part, ...]
) -> list[tuple[RedisAddress, Any]]:
    """Ask all at once; return what was answered soon, or raise the best reason why nothing was."""
    loop = asyncio.get_running_loop()
    tasks = {loop.create_task(_ask_one(each, question)): each for each in addresses}
    answers: list[tuple[RedisAddress, Any]] = []
    failures: list[tuple[RedisAddress, EngineError]] = []
    left, end = set(tasks), loop.time() + store.timeout
    try:
        while left and (wait := end - loop.time()) > 0:
            done, left = await asyncio.wait(left, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    answers.append((tasks[task], task.result()))
                except EngineError as error:
                    failures.append((tasks[task], error))
            if answers:
                end = min(end, loop.time() + _GRACE_SECONDS)
    finally:
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
    if not answers:
        raise _why(store, failures)
    return answers


async def _ask_one(address: RedisAddress, question: tuple[Part, ...]) -> Any:
    wire = await RedisProtocol.open(address)
    try:
        return await wire.call(question)
    finally:
        wire.abort()


def _why(store: RedisAddress, failures: list[tuple[RedisAddress, EngineError]]) -> EngineError:
    """The reason that people can do something about, if one of those who were asked gave any."""
    for asked, error in failures:
        if isinstance(error, WrongKind):
            return no_sentinel(asked) if store.kind == "sentinel" else no_cluster(asked)
        if "No such master" in str(error):
            return no_master(store, asked)
        if not isinstance(error, EngineUnavailable):
            return error
    errors = [error for _, error in failures]
    for asked, error in failures:
        if isinstance(error, EngineRefused):
            return refused_by_sentinel(asked, error) if store.kind == "sentinel" else error
    return nobody(store, errors)
