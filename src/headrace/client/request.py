"""Requests and responses as values, and the pause between attempts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.client.address import ServerAddress
from headrace.errors import HeadraceError, MissingDriver

if TYPE_CHECKING:
    from headrace.client.transport import Transport

FIRST_WAIT = 0.2
LONGEST_WAIT = 5.0


class Request(msgspec.Struct, kw_only=True):
    """One request. An `idempotent` one may be sent twice; `read_timeout` is in seconds.

    `conflict_error` is the error that 409 stands for, where it is not JobConflict.
    """

    method: str
    path: str
    params: Mapping[str, Any] = {}
    body: bytes | None = None
    files: Mapping[str, Any] | None = None
    fields: Mapping[str, str] = {}
    idempotent: bool = False
    read_timeout: float | None = None
    conflict_error: type[HeadraceError] | None = None


class Response(msgspec.Struct, frozen=True):
    """A success: its status and its content."""

    status: int
    content: bytes


def pause(tried: int) -> float:
    """Return the seconds before the next attempt: growing, and spread out over many clients."""
    spread: float = random.uniform(0.75, 1.25)  # noqa: S311 - no secret depends on it
    return min(FIRST_WAIT * 2.0**tried, LONGEST_WAIT) * spread


def open_transport(address: ServerAddress, *, timeout: float, retries: int) -> Transport:
    """Return the transport to a server. Raises `MissingDriver`, which names the extra."""
    try:
        from headrace.client.transport import Transport  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise MissingDriver(
            'headrace.Client needs "httpx", which is not installed. '
            'Install it with: pip install "headrace[client]"'
        ) from None
    return Transport(address, timeout=timeout, retries=retries)
