"""One server of a group, and how it is started although somebody takes its port."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hiredis

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import pack
from tests.support.processes import LIMIT
from tests.support.servers import RedisServer, free_port, memory_for_files

_NODE_TIMEOUT_MS = 2000
_TAKEN = "Address already in use"


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
