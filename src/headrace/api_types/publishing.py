"""Event types and destinations, as the server and its clients exchange them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from headrace.api_types.requests import Name

# The version is part of the name: a change that receivers would notice is another type.
EVENT_TYPE = r"^[a-z0-9_]+(\.[a-z0-9_]+)*\.v[1-9][0-9]{0,4}$"
# A type, or the beginning of types: "document.*", "*".
TYPE_PATTERN = r"^(\*|[a-z0-9_]+(\.[a-z0-9_]+)*(\.\*)?)$"
# 24 to 64 bytes in base64.
_GROUP = "[A-Za-z0-9+/]"
SECRET = (
    rf"^whsec_(({_GROUP}{{4}}){{8,20}}({_GROUP}{{3}}=|{_GROUP}{{2}}==)?"
    rf"|({_GROUP}{{4}}){{21}}({_GROUP}{{2}}==)?)$"
)
MOST_RETRIES = 100
RETRIES = 10

DestinationKind = Literal[
    "webhook",
    "kafka",
    "rabbitmq",
    "nats",
    "redis_streams",
    "sqs",
    "slack",
    "discord",
    "email",
]
TypePattern = Annotated[str, Meta(pattern=TYPE_PATTERN, max_length=128)]
TypePatterns = Annotated[list[TypePattern], Meta(min_length=1, max_length=100)]


class EventTypeView(msgspec.Struct, kw_only=True):
    """A type of events that jobs publish, with the JSON schema of its data."""

    name: str
    summary: str = ""
    schema: dict[str, Any] = {}
    declared_at: datetime


class DestinationRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where events go. `options` are those of the kind; `secret` is for webhooks (`whsec_…`):
    without one it is made.
    """

    kind: DestinationKind
    options: dict[str, Any]
    types: TypePatterns = msgspec.field(default_factory=lambda: ["*"])
    secret: Annotated[str, Meta(pattern=SECRET)] | None = None
    retries: Annotated[int, Meta(ge=0, le=MOST_RETRIES)] = RETRIES


class RotateRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`finish` ends a rotation: only the newest secret is used from then on."""

    finish: bool = False


class DestinationView(msgspec.Struct, kw_only=True):
    """A destination without its secrets. `secrets` is how many sign: two during a rotation.

    `reason` says why it is disabled.
    """

    name: str
    kind: str
    types: list[str]
    options: dict[str, Any]
    enabled: bool
    reason: str | None = None
    retries: int = RETRIES
    secrets: int = 0
    origin: str = ""
    created_at: datetime
    changed_at: datetime


class NewDestination(DestinationView, kw_only=True):
    """The same with the secret of a webhook, where one was made or given now. It is not shown
    again.
    """

    secret: str | None = None


class DestinationRemoved(msgspec.Struct):
    """The destination that is gone."""

    name: Name
