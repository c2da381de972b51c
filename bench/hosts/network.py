"""Hosts as network namespaces, each joined with the first by a pair of virtual cables."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

NETWORK = "10.203"


class HostsMissing(Exception):
    """This machine has no namespaces for us; the text says why."""


class Hosts:
    """`store`, and others that reach it at `address(name)`. Use it as `with`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = ("store", *names)
        self._made: list[str] = []

    def __enter__(self) -> Hosts:
        if os.geteuid() != 0:
            raise HostsMissing("network namespaces need root")
        if shutil.which("ip") is None:
            raise HostsMissing("there is no `ip`: install iproute2")
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise HostsMissing(f"no network namespaces here: {error.stderr.strip()}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "del", self._space(name)], check=False)
        self._made.clear()

    def _make(self) -> None:
        for name in self._names:
            _ip("netns", "add", self._space(name))
            self._made.append(name)
            _ip("-n", self._space(name), "link", "set", "lo", "up")
        for number, name in enumerate(self._names[1:], 1):
            here, there = f"hr{os.getpid() % 10_000}s{number}", f"hr{os.getpid() % 10_000}c{number}"
            _ip("link", "add", here, "type", "veth", "peer", "name", there)
            for cable, host, end in ((here, "store", 1), (there, name, 2)):
                space = self._space(host)
                _ip("link", "set", cable, "netns", space)
                _ip("-n", space, "addr", "add", f"{NETWORK}.{number}.{end}/24", "dev", cable)
                _ip("-n", space, "link", "set", cable, "up")

    def address(self, name: str) -> str:
        """The address of the host of the store, as seen from another."""
        return f"{NETWORK}.{self._names.index(name)}.1"

    def on(self, name: str, command: Sequence[str]) -> list[str]:
        """The command that runs another one on a host."""
        return ["ip", "netns", "exec", self._space(name), *command]

    def _space(self, name: str) -> str:
        return f"headrace-{os.getpid()}-{name}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
