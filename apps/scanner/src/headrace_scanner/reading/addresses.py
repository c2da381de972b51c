"""Addresses that may be connected to: public ones, so that nobody who may name a product reaches
the services behind the firewall.
"""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

from headrace.bundles import is_public
from headrace_scanner.errors import InvalidProduct, Unreached

LONGEST_URL = 2000
PORTS = {"http": 80, "https": 443}
REMEDY = "set HEADRACE_SCANNER_ALLOW_PRIVATE=true for all workers if that is wanted"


def check_url(text: str) -> str:
    """Return an address of a product. Raises `InvalidProduct` for what cannot be one."""
    if len(text) > LONGEST_URL:
        raise InvalidProduct(f"url has {len(text):,} characters, the limit is {LONGEST_URL:,}")
    if not text.isprintable() or " " in text:
        raise InvalidProduct(f"url is {shown(text)}; it has characters that no URL has")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidProduct(f"url is {shown(text)}, which is not a URL") from None
    if parts.scheme not in PORTS:
        raise InvalidProduct(f"url is {shown(text)}; it has to begin with http:// or https://")
    if not host:
        raise InvalidProduct(f"url is {shown(text)}, which names no host")
    if parts.username is not None or parts.password is not None:
        raise InvalidProduct("url has a user name or a password in it; leave them out")
    return text


def origin_of(url: str) -> str:
    """Return scheme, host and port of a checked address."""
    parts = urlsplit(url)
    port = parts.port or PORTS[parts.scheme]
    return f"{parts.scheme}://{parts.hostname}:{port}"


async def resolve(url: str, *, allow_private: bool) -> list[str]:
    """Return the addresses of the host of a URL. Raises `InvalidProduct` if one is private."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, parts.port or PORTS[parts.scheme], type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise Unreached(f"the host {shown(host)} cannot be found: {error}") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not allow_private and not all(is_public(each) for each in addresses):
        raise InvalidProduct(f"the host {shown(host)} is at a private address; {REMEDY}")
    return addresses


def shown(text: str) -> str:
    """Return a text in quotes, short and harmless, for errors and logs."""
    harmless = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:120])
    return f'"{harmless}{"…" if len(text) > 120 else ""}"'
