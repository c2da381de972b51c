"""Addresses that may be connected to: public ones, so that nobody who may name a URL reaches the
services behind the firewall.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from headrace_spots.crawling.urls import shown
from headrace_spots.errors import CrawlFailed, InvalidAddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# IPv4 addresses that a gateway translates.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
REMEDY = "set HEADRACE_SPOTS_ALLOW_PRIVATE=true for all workers if that is wanted"


def is_public(text: str) -> bool:
    """Return whether an address is one of the internet, as far as one can tell from it."""
    address: IPAddress = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        # An IPv4 address in another form must not pass because of the form.
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            address = inner
        elif address.teredo is not None or address in _TRANSLATED:
            return False
    return address.is_global and not address.is_multicast


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
