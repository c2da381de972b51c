"""The URL of the server, and its credentials."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from headrace.config import Settings
from headrace.errors import InvalidSetting

FORM = "use http://host:port or https://host"


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A checked server URL without any secret in it, and the secrets beside it.

    `login` is for a proxy before the server that asks for a user and a password.
    """

    base: str
    api_key: str | None = None
    login: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"<ServerAddress {self.base}>"

    def headers(self) -> Mapping[str, str]:
        """Return the headers with the key."""
        if self.api_key is None:
            return {}
        if self.login is not None:
            # `Authorization` belongs to the proxy's login.
            return {"X-API-Key": self.api_key}
        return {"Authorization": f"Bearer {self.api_key}"}


def find_address(url: str | None, api_key: str | None, settings: Settings) -> ServerAddress:
    """Return what was given in code, else the settings, else the local server."""
    shown_host = f"[{settings.host}]" if ":" in settings.host else settings.host
    found = url or settings.api_url or f"http://{shown_host}:{settings.port}"
    return parse_address(found, api_key or settings.api_key)


def parse_address(url: str, api_key: str | None = None) -> ServerAddress:
    """Check a server URL. No error shows its password."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidSetting(f"API_URL is not a URL ({error}); {FORM}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        scheme = parts.scheme or "none"
        raise InvalidSetting(f"API_URL has the scheme {scheme!r} and no server; {FORM}") from None
    if parts.query or parts.fragment:
        raise InvalidSetting(f"API_URL ends in a query or fragment; leave it out: {FORM}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if port is None else f"{host}:{port}"
    login = (
        None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    )
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise InvalidSetting("HEADRACE_API_KEY has characters that no key has; copy it again")
    return ServerAddress(
        base=f"{parts.scheme}://{place}{parts.path.rstrip('/')}",
        api_key=api_key,
        login=login,
    )
