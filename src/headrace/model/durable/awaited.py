"""What a suspended job waits for. Engines keep it as JSON, and look when they are asked to."""

from __future__ import annotations

import msgspec

# The kind of the entries that hold what was delivered to a job from outside.
EVENT = "event"


class AwaitedEvent(msgspec.Struct, frozen=True, tag="event"):
    """An event of this name was delivered to the job."""

    name: str


class AwaitedChildren(msgspec.Struct, frozen=True, tag="children"):
    """At most `left` children of the job are unfinished. `group` None: of all groups together."""

    group: str | None = None
    left: int = 0


Awaited = AwaitedEvent | AwaitedChildren

_decoder = msgspec.json.Decoder(tuple[Awaited, ...])


def encode_awaited(awaits: tuple[Awaited, ...]) -> bytes | None:
    """The form that engines keep, e.g. `[{"type":"event","name":"approved"}]`; None: nothing."""
    return msgspec.json.encode(awaits) if awaits else None


def decode_awaited(stored: bytes | str | None) -> tuple[Awaited, ...]:
    """What an engine has kept."""
    return _decoder.decode(stored) if stored else ()
