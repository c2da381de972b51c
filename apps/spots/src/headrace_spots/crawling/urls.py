"""URLs of shops: cleaned, or refused. No I/O."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

from headrace_spots.errors import InvalidAddress

LONGEST_URL = 2000
PORTS = {"http": 80, "https": 443}
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]")
# They name where a visitor came from, not another page.
_TRACKING = re.compile(r"utm_.*|fbclid|gclid|n_media|n_query", re.IGNORECASE)
_SAFE = "/%:@!$&'()*+,;=-._~"
_FILES = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|js|json|xml|pdf|zip|gz|mp[34]|woff2?|exe)$", re.IGNORECASE
)


def clean_url(text: str) -> str:
    """Return the URL of a shop in one form: no fragment, no tracking, host in small letters.

    Refused is what is not `http` or `https`, has a name or password in it, or is too long.
    """
    text = text.strip()
    if len(text) > LONGEST_URL:
        raise InvalidAddress(f"url has {len(text):,} characters; at most {LONGEST_URL:,} are taken")
    if not text or _CONTROL.search(text):
        raise InvalidAddress(f"url is {shown(text)}; give one like https://shop.example/reviews")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidAddress(f"url is {shown(text)}, which is not a URL") from None
    if parts.scheme.lower() not in PORTS:
        raise InvalidAddress(f"url is {shown(text)}; it has to begin with http:// or https://")
    if not host:
        raise InvalidAddress(f"url is {shown(text)}, which names no host")
    if parts.username is not None or parts.password is not None:
        raise InvalidAddress("url has a user name or a password in it; leave them out")
    return urlunsplit(_cleaned(parts, _ascii_host(host), port))


def _cleaned(parts: SplitResult, host: str, port: int | None) -> SplitResult:
    scheme = parts.scheme.lower()
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != PORTS[scheme]:
        place = f"{place}:{port}"
    query = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(name)
    ]
    path = quote(parts.path or "/", safe=_SAFE)
    return SplitResult(scheme, place, path, urlencode(query), "")


def _ascii_host(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        named = host.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise InvalidAddress(f"the host {shown(host)} is not a name that can exist") from None
    if not named:
        raise InvalidAddress(f"the host {shown(host)} is not a name that can exist")
    return named


def host_of(url: str) -> str:
    """Return the host of a cleaned URL."""
    return urlsplit(url).hostname or ""


def origin_of(url: str) -> str:
    """Return scheme, host and port of a cleaned URL: what one robots.txt is for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def lane_of(url: str) -> str:
    """Return the host whose pages are fetched one at a time: `www.` is the same shop."""
    return host_of(url).removeprefix("www.")


def linked(base: str, link: str) -> str | None:
    """Return where a link leads, cleaned; None if it is no page."""
    try:
        found = clean_url(urljoin(base, link.strip()))
    except (InvalidAddress, ValueError):
        return None
    return None if _FILES.search(urlsplit(found).path) else found


def is_below(url: str, start: str) -> bool:
    """Return whether a page belongs to the shop that begins at `start`: the same host, and the
    same path with another query, or a path below it.
    """
    if lane_of(url) != lane_of(start):
        return False
    path, top = urlsplit(url).path, urlsplit(start).path
    folder = top if top.endswith("/") else f"{top}/"
    return path == top or path.startswith(folder)


def shown(text: str) -> str:
    """Return a text in quotes, short and harmless, for errors and logs."""
    harmless = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:120])
    return f'"{harmless}{"…" if len(text) > 120 else ""}"'
