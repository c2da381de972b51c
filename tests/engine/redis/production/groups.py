"""Servers that replace each other: a master with replicas and sentinels, and a cluster.

They keep nothing on disk, and notice within two seconds that one of them is gone.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hiredis

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import pack
from tests.support.processes import LIMIT
from tests.support.servers import RedisServer, free_port, memory_for_files

MASTER = "the-master"
_NODE_TIMEOUT_MS = 2000
_DOWN_AFTER_MS = 1000
_TAKEN = "Address already in use"
_SLOTS = 16_384


class Node(RedisServer):
    """One server of a group. `settings` are in addition to the usual ones."""

    def __init__(self, binary: Path, name: str, *settings: str) -> None:
        super().__init__(binary, name=name, within=memory_for_files())
        self.settings = settings

    def command(self) -> list[str]:
        return [
            str(self.binary),
            *("--port", str(self.port)),
            *("--bind", "127.0.0.1"),
            *("--dir", str(self.folder)),
            *("--save", ""),
            *("--repl-diskless-sync-delay", "0"),
            *self.settings,
        ]

    def ready(self) -> bool:
        """Whether it answers, and not somebody who has had its port before."""
        try:
            answer = self.ask("INFO", "server")
        except OSError:
            return False
        pid = 0 if self.process is None else self.process.pid
        return f"process_id:{pid}\r\n" in answer or answer.startswith("NOAUTH")

    def ask(self, *command: str | int) -> Any:
        """What it answers to one command: texts and numbers, or the text of its error."""
        reader = hiredis.Reader(encoding="utf-8", errors="replace")
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(pack(command))
            while (answer := reader.gets()) is False:
                if not (data := connection.recv(65_536)):
                    raise ConnectionError("it hung up")
                reader.feed(data)
        return str(answer) if isinstance(answer, Exception) else answer

    def told(self, *command: str | int) -> dict[str, str]:
        """What it answers with one field in a line."""
        lines = str(self.ask(*command)).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def revive(self) -> None:
        """Start it again; elsewhere if somebody has taken its port meanwhile."""
        started(lambda: self, again=self.move)

    def move(self) -> None:
        self.port = free_port()


class ClusterNode(Node):
    """A node of a cluster. Its bus has a port of its own that was found to be free: the usual one,
    ten thousand above the other, may belong to anybody.
    """

    def __init__(self, binary: Path, name: str, *settings: str) -> None:
        super().__init__(binary, name, *settings)
        self.bus = free_port()

    def command(self) -> list[str]:
        return [
            *super().command(),
            *("--cluster-enabled", "yes"),
            *("--cluster-port", str(self.bus)),
            *("--cluster-node-timeout", str(_NODE_TIMEOUT_MS)),
            *("--cluster-require-full-coverage", "no"),
        ]

    def move(self) -> None:
        super().move()
        self.bus = free_port()

    @property
    def id(self) -> str:
        return str(self.ask("CLUSTER", "MYID"))

    def slots(self) -> list[tuple[int, int]]:
        """The slots that it has, as it says itself."""
        lines = str(self.ask("CLUSTER", "NODES")).splitlines()
        [mine] = [line for line in lines if "myself" in line]
        parts = mine.split()[8:] if "master" in mine else []
        ends = [part.partition("-")[::2] for part in parts if not part.startswith("[")]
        return [(int(first), int(last or first)) for first, last in ends]

    def has(self, namespace: str) -> bool:
        """Whether the store of this namespace is here."""
        slot = RedisAddress(namespace=namespace).slot
        return any(first <= slot <= last for first, last in self.slots())


class Sentinel(Node):
    """Watches one master."""

    def __init__(self, binary: Path, name: str, *lines: str) -> None:
        super().__init__(binary, name)
        self.file = self.folder / "sentinel.conf"
        self.file.write_text(
            "\n".join((f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", *lines, ""))
        )

    def command(self) -> list[str]:
        return [str(self.binary), str(self.file), "--sentinel"]


def started(make: Callable[[], Any], again: Callable[[], None] = lambda: None) -> Any:
    """Start what is made; once more with other ports if one of them was taken meanwhile."""
    for _ in range(10):
        made = make()
        try:
            made.start()
        except RuntimeError as error:
            if _TAKEN not in str(error):
                raise
            again()
        else:
            return made
    raise RuntimeError(f"ten times in a row: {_TAKEN}")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {LIMIT:g} s"
        time.sleep(0.02)


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

    def _knows_all(self, node: ClusterNode) -> bool:
        if node.told("CLUSTER", "INFO")["cluster_state"] != "ok":
            return False
        flags = [line.split()[2] for line in str(node.ask("CLUSTER", "NODES")).splitlines()]
        return len(flags) == len(self.members) and not any(
            bad in each for each in flags for bad in ("fail", "handshake", "noaddr")
        )
