"""Addresses that a webhook may be sent to: public ones, so that nobody who may name an URL reaches
the services behind the firewall.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from headrace.publishing.sender import DeliveryFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


async def find_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return the addresses of a host. The connection has to go to one of these, not to the name:
    a name may be answered differently the next time.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
    except (OSError, UnicodeError) as error:
        raise DeliveryFailed(f"the host {host} cannot be found: {error}") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    usable = [each for each in addresses if allow_private or is_public(each)]
    if not usable:
        raise DeliveryFailed(
            f"the host {host} has no public address, and webhooks to private ones are refused; "
            "set HEADRACE_ALLOW_PRIVATE_WEBHOOKS=true for all workers if that is wanted"
        )
    return usable


def is_public(text: str) -> bool:
    """Return whether an address is reachable from everywhere, as far as one can tell from it."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        # An IPv4 address in another form must not pass because of the form.
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            address = inner
        elif address.teredo is not None or address in _TRANSLATED:
            return False
    return address.is_global and not address.is_multicast


_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
