"""What delivers to one destination: an HTTP client, or a producer of a broker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.publishing.destinations import Destination
    from headrace.publishing.events import PublishedEvent


# The W3C trace context of a delivery; empty while traces are off.
Trace: TypeAlias = Mapping[str, str]
NO_TRACE: Trace = {}


class DeliveryFailed(HeadraceError):
    """A destination did not take an event. Tried again while attempts are left."""


class DestinationGone(HeadraceError):
    """A destination wants no events any more: it is disabled."""


class Sender(ABC):
    """Sends events to one destination, several at a time."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination

    @abstractmethod
    async def open(self) -> None:
        """Connect."""

    @abstractmethod
    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        """Deliver an event; `body` is its JSON, `trace` headers to send along. Returns once the
        receiver has confirmed it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close every connection."""


def named(template: str, event: PublishedEvent) -> str:
    """Return a topic, subject or stream with the type of the event put in."""
    return template.replace("{type}", event.type)
