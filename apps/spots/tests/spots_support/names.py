"""Names of hosts for tests, in place of the DNS of this machine."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest


class Names:
    """What names lead to, in place of the DNS of this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **known: list[str]) -> None:
        self.asked: list[str] = []
        real = asyncio.BaseEventLoop.getaddrinfo

        async def getaddrinfo(loop: Any, host: Any, port: Any, **options: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else str(host)
            if name.replace(".", "_") not in known:
                return await real(loop, host, port, **options)
            self.asked.append(name)
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
                for address in known[name.replace(".", "_")]
            ]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
