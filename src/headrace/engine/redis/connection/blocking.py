"""The same wire for a thread that may wait: one question, one answer."""

from __future__ import annotations

import socket
from typing import Any

import hiredis

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import Part, pack
from headrace.engine.redis.connection.errors import before_greeting, fault, unavailable


class BlockingConnection:
    """A connection for one thread; opened on first use, and again if lost."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._socket: socket.socket | None = None
        self._reader = hiredis.Reader()

    def call(self, *command: Part) -> Any:
        """Send a command and wait for its answer."""
        try:
            return self._ask(self._socket or self._open(), command)
        except (OSError, hiredis.ProtocolError) as error:
            self.close()
            raise unavailable(self.address, error) from error

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self) -> socket.socket:
        try:
            opened = self._connected()
            self._reader = hiredis.Reader()
            for command in self.address.greeting():
                self._greet(opened, command)
        except BaseException:
            self.close()
            raise
        return opened

    def _connected(self) -> socket.socket:
        address = self.address
        if address.path is not None:
            opened = self._socket = socket.socket(socket.AF_UNIX)
            opened.settimeout(address.timeout)
            opened.connect(address.path)
            return opened
        context = address.ssl_context
        opened = self._socket = socket.create_connection(
            (address.host, address.port), address.timeout
        )
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            opened = self._socket = context.wrap_socket(opened, server_hostname=address.host)
        return opened

    def _greet(self, opened: socket.socket, command: tuple[Part, ...]) -> None:
        try:
            self._ask(opened, command)
        except ConnectionError as error:
            raise unavailable(self.address, before_greeting(self.address, error)) from error

    def _ask(self, opened: socket.socket, command: tuple[Part, ...]) -> Any:
        opened.sendall(pack(command))
        while (reply := self._reader.gets()) is False:
            data = opened.recv(65_536)
            if not data:
                raise ConnectionResetError("the connection was lost")
            self._reader.feed(data)
        if isinstance(reply, hiredis.ReplyError):
            raise fault(self.address, str(reply))
        return reply
