"""Addresses that may be connected to: public ones, so that nobody who may name a URL reaches the
services behind the firewall.
"""

from __future__ import annotations

import asyncio
import socket

from headrace.bundles import is_public
from headrace_spots.crawling.urls import shown
from headrace_spots.errors import CrawlFailed, InvalidAddress

REMEDY = "set HEADRACE_SPOTS_ALLOW_PRIVATE=true for all workers if that is wanted"


def check_named(host: str) -> None:
    """Refuse a host that is a private address by its own text, or this machine by name."""
    try:
        refused = not is_public(host)
    except ValueError:
        refused = host == "localhost" or host.endswith(".localhost")
    if refused:
        raise InvalidAddress(f"the host {shown(host)} is a private address; {REMEDY}")


async def resolve(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return the addresses of a host. The connection has to go to one of these and not to the
    name, which may be answered differently the next time. Raises `InvalidAddress` if one of them is
    private: a name with both is a trick.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
    except (OSError, UnicodeError) as error:
        raise CrawlFailed(f"the host {shown(host)} cannot be found: {error}") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not allow_private and not all(is_public(each) for each in addresses):
        raise InvalidAddress(f"the host {shown(host)} leads to a private address; {REMEDY}")
    return addresses
