"""Addresses to listen on."""

from __future__ import annotations

import socket
from typing import NamedTuple

from headrace.errors import InvalidSetting

LOOPBACK = "127.0.0.1"
OFF = "off"


class SocketAddress(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def parse_address(field: str, text: str) -> SocketAddress | None:
    """Read `[HOST:]PORT`; `off` is None. Without a host it is for this machine only."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidSetting(
            f'{field} {text!r}: put an IPv6 address in brackets, like "[::1]:9100"'
        )
    if colon and not host:
        raise InvalidSetting(
            f'{field} {text!r} has no host: write "{port}" for this machine only, or '
            f'"0.0.0.0:{port}" for every network'
        )
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise InvalidSetting(
            f"{field} must be [HOST:]PORT with a port between 0 and 65535, or {OFF}, got {text!r}"
        )
    return SocketAddress(host or LOOPBACK, int(port))


def bind(host: str, port: int, *, choose: str = "--port or HEADRACE_PORT") -> socket.socket:
    """Take the port now, so that a taken port is one clear error. `choose` is where another one is
    chosen.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InvalidSetting(f"host {host!r} is not an address of this machine: {error}") from None
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise InvalidSetting(
            f"cannot listen on {host}:{port}: {error.strerror}; "
            f"stop what uses it, or choose another with {choose}"
        ) from None
    sock.setblocking(False)
    return sock


def url_of(sock: socket.socket) -> str:
    """Return the URL of what listens there."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
