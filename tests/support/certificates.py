"""The certificates that this machine trusts, read once.

Each client of httpx reads all of them, also where it never speaks TLS, and that takes longer than
most of what a test asks a server for.
"""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx
from httpx._transports import default

# What httpx looks at besides what it is told.
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def share_certificates() -> None:
    """Let all clients of this process that trust the same have one context for TLS."""
    make = httpx.create_ssl_context

    @cache
    def usual(trust_env: bool, *_: str | None) -> ssl.SSLContext:
        return make(trust_env=trust_env)

    def shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return make(verify=verify, cert=cert, trust_env=trust_env)
        return usual(trust_env, *map(os.environ.get, VARIABLES))

    setattr(default, "create_ssl_context", shared)  # noqa: B010 - it is no public name of httpx
