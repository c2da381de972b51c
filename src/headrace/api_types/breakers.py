"""Requests and responses about circuit breakers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.api_types.requests import REASON, Name, Text
from headrace.model.limits.breaker import LONGEST_PAUSE, SHORTEST_PAUSE


class OpenBreakerRequest(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which breaker to open, for how many seconds before a job is tried, and why. Without `pause`
    it is as long as its task says.
    """

    queue: Name
    lane: Text
    pause: Annotated[float, Meta(ge=SHORTEST_PAUSE, le=LONGEST_PAUSE)] | None = None
    reason: Annotated[str, Meta(pattern=REASON)] | None = None


class CloseBreakerRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which breaker to close."""

    queue: Name
    lane: Text


class BreakerClosed(msgspec.Struct):
    """A breaker that is closed now, and whether it was open."""

    queue: str
    lane: str
    was_open: bool
