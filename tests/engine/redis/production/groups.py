"""Servers that replace each other: a master with replicas and sentinels, and a cluster.

They keep nothing on disk, and notice within two seconds that one of them is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.engine.redis.connection.address import RedisAddress
from tests.engine.redis.production.nodes import ClusterNode, Node, Sentinel, wait_for

MASTER = "the-master"
_DOWN_AFTER_MS = 1000
_SLOTS = 16_384


class Group:
    """Servers that are started and destroyed together."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def begin(self, nodes: Sequence[Node]) -> None:
        """Start some. If one cannot be started, none is left."""
        self.nodes += nodes
        try:
            for node in nodes:
                node.start()
        except RuntimeError:
            self.destroy()
            raise

    def destroy(self) -> None:
        for node in self.nodes:
            node.destroy()

    def revive(self) -> None:
        """Start those that were killed."""
        for node in self.nodes:
            if node.process is None:
                node.revive()


class SentinelGroup(Group):
    """A master, replicas, and three sentinels of which two have to agree."""

    def __init__(self, binary: Path, *, replicas: int = 1) -> None:
        super().__init__()
        self.binary = binary
        self.replicas = replicas
        self.servers: list[Node] = []
        self.sentinels: list[Sentinel] = []

    def start(self) -> None:
        first = Node(self.binary, "master")
        self.begin([first])
        follow = ("--replicaof", f"127.0.0.1 {first.port}")
        others = [Node(self.binary, f"replica{n}", *follow) for n in range(self.replicas)]
        self.begin(others)
        self.servers = [first, *others]
        lines = (
            f"sentinel monitor {MASTER} 127.0.0.1 {first.port} 2",
            f"sentinel down-after-milliseconds {MASTER} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {MASTER} 3000",
        )
        self.sentinels = [Sentinel(self.binary, f"sentinel{n}", *lines) for n in range(3)]
        self.begin(self.sentinels)
        self.wait_until_whole()

    def revive(self) -> None:
        """Also those that were masters follow at once, and not when a sentinel tells them to."""
        for node in self.servers:
            if node.process is None:
                node.settings = ("--replicaof", f"127.0.0.1 {self.master.port}")
        super().revive()

    @property
    def master(self) -> Node:
        """The one that most of the sentinels name."""
        ports = [int(told[1]) for each in self.sentinels if (told := self._named(each))]
        port = max(ports, key=ports.count)
        return next(node for node in self.servers if node.port == port)

    def _named(self, sentinel: Sentinel) -> Any:
        return sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)

    def url(self, **options: object) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"redis+sentinel://{hosts}/{MASTER}?{query}"

    def wait_until_whole(self) -> None:
        """Until replicas follow the master, and all sentinels know all."""

        def whole() -> bool:
            master = self.master.told("INFO", "replication")
            replicas = [master.get(f"slave{n}", "") for n in range(self.replicas)]
            return (
                master["role"] == "master"
                and all("state=online" in each for each in replicas)
                and all(self._knows_all(each) for each in self.sentinels)
            )

        wait_for(whole, "a whole group")
        wait_for_replicas([self.master], self.replicas)

    def _knows_all(self, sentinel: Sentinel) -> bool:
        answer = sentinel.ask("SENTINEL", "MASTER", MASTER)
        told = dict(zip(answer[::2], answer[1::2], strict=True))
        others = len(self.sentinels) - 1
        return (
            told["flags"] == "master"
            and int(told["num-other-sentinels"]) == others
            and int(told["num-slaves"]) == self.replicas
        )


class ClusterGroup(Group):
    """Masters with their parts of the slots, and replicas of the first ones."""

    def __init__(self, binary: Path, *, masters: int = 3, replicas: int = 1) -> None:
        super().__init__()
        self.binary = binary
        self.counts = masters, replicas
        self.members: list[ClusterNode] = []

    def start(self) -> None:
        masters, replicas = self.counts
        self.members = [ClusterNode(self.binary, f"cluster{n}") for n in range(masters + replicas)]
        self.begin(self.members)
        bounds = [_SLOTS * n // masters for n in range(masters + 1)]
        for n, node in enumerate(self.members[:masters]):
            node.ask("CLUSTER", "ADDSLOTSRANGE", bounds[n], bounds[n + 1] - 1)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
        first = self.members[0]
        for node in self.members[1:]:
            node.ask("CLUSTER", "MEET", "127.0.0.1", first.port, first.bus)
        wait_for(lambda: all(self._knows_all(node) for node in self.members), "a cluster")
        for master, node in zip(self.members, self.members[masters:], strict=False):
            node.ask("CLUSTER", "REPLICATE", master.id)
        self.wait_until_whole()

    def url(self, **options: object) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.members)
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"redis+cluster://{hosts}?{query}"

    def namespace_of(self, node: ClusterNode, hint: str) -> str:
        """A namespace whose slot is on this node now."""
        slots = node.slots()
        names = (f"{hint}{n}" for n in range(10_000))
        return next(
            name
            for name in names
            for first, last in slots
            if first <= RedisAddress(namespace=name).slot <= last
        )

    def owner(self, namespace: str) -> ClusterNode:
        """The master that has the slot of a namespace."""
        alive = [node for node in self.members if node.process is not None]
        return next(node for node in alive if node.has(namespace))

    def wait_until_whole(self) -> None:
        """Until all nodes know all, each slot has one master, and replicas follow theirs."""
        replicas = self.counts[1]

        def whole() -> bool:
            links = [
                told.get("master_link_status")
                for node in self.members
                if (told := node.told("INFO", "replication"))["role"] == "slave"
            ]
            slots = sum(last - first + 1 for node in self.members for first, last in node.slots())
            known = all(self._knows_all(node) for node in self.members)
            return known and slots == _SLOTS and links == ["up"] * replicas

        wait_for(whole, "a whole cluster")
        wait_for_replicas([node for node in self.members if node.slots()], replicas)

    def _knows_all(self, node: ClusterNode) -> bool:
        if node.told("CLUSTER", "INFO")["cluster_state"] != "ok":
            return False
        flags = [line.split()[2] for line in str(node.ask("CLUSTER", "NODES")).splitlines()]
        return len(flags) == len(self.members) and not any(
            bad in each for each in flags for bad in ("fail", "handshake", "noaddr")
        )


def wait_for_replicas(masters: Sequence[Node], count: int) -> None:
    """Until replicas have confirmed what their masters have written by now. "Online" does not say
    so: while a replica loads its first copy, what is written meanwhile is at its master only.
    """
    goals = {node: int(node.told("INFO", "replication")["master_repl_offset"]) for node in masters}

    def caught_up() -> bool:
        confirmed = [
            int(dict(part.split("=") for part in text.split(","))["offset"]) >= goal
            for node, goal in goals.items()
            for name, text in node.told("INFO", "replication").items()
            if name.startswith("slave") and name[5:].isdigit()
        ]
        return len(confirmed) == count and all(confirmed)

    wait_for(caught_up, "replicas that have what their masters have")
