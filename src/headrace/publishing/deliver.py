"""Delivers events to destinations, over connections that are kept while they are used."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from typing import Any

import msgspec

from headrace.config import Settings
from headrace.errors import HeadraceError, RetryLater
from headrace.publishing.destinations import Destination
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import NO_TRACE, DeliveryFailed, DestinationGone, Sender
from headrace.publishing.store import StoredDestination
from headrace.tracing import find_tracing

log = logging.getLogger("headrace.publishing")

# A connection that was not used for so long is closed.
IDLE_SECONDS = 60.0
CLOSE_SECONDS = 5.0
SENDERS = {
    "webhook": "headrace.publishing.webhook:WebhookSender",
    "kafka": "headrace.publishing.brokers.kafka:KafkaSender",
    "rabbitmq": "headrace.publishing.brokers.rabbitmq:RabbitmqSender",
    "nats": "headrace.publishing.brokers.nats:NatsSender",
    "redis_streams": "headrace.publishing.brokers.redis_streams:RedisStreamsSender",
    "sqs": "headrace.publishing.brokers.sqs:SqsSender",
    "slack": "headrace.publishing.chat:SlackSender",
    "discord": "headrace.publishing.chat:DiscordSender",
    "email": "headrace.publishing.mail:EmailSender",
}
OVER_HTTP = ("webhook", "slack", "discord")


class _Open(msgspec.Struct, eq=False):
    """A sender in use: of one version of its destination."""

    sender: Sender
    version: int
    opening: asyncio.Task[None]
    users: int = 0
    timer: asyncio.TimerHandle | None = None


class Deliveries:
    """The senders of one App, on its event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[str, _Open] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, stored: StoredDestination, event: PublishedEvent) -> None:
        """Deliver an event once. Errors have no secret of the destination in them.

        Raises `DestinationGone` if it wants no events any more, `RetryLater` if it said when to
        come again, `DeliveryFailed` for anything else that a further try may mend.
        """
        destination = stored.destination
        used = self._sender(stored)
        used.users += 1
        try:
            async with asyncio.timeout(destination.typed_options.timeout):
                # Opened by a task of its own: others may wait for the same.
                await asyncio.shield(used.opening)
                await self._send(used.sender, destination, event)
        except (DestinationGone, RetryLater, DeliveryFailed) as error:
            raise _hidden(error, destination) from None
        except TimeoutError:
            self._discard(destination.name, used)
            raise DeliveryFailed(
                f"{destination.kind} did not answer within {destination.typed_options.timeout:g} s"
            ) from None
        except HeadraceError:
            raise
        except Exception as error:
            # The state of the connection is not known: the next try begins with a new one.
            self._discard(destination.name, used)
            text = destination.hide(f"{type(error).__name__}: {error}")
            raise DeliveryFailed(f"{destination.kind}: {text}") from None
        finally:
            used.users -= 1
            self._rest(destination.name, used)

    async def _send(self, sender: Sender, destination: Destination, event: PublishedEvent) -> None:
        body = msgspec.json.encode(event)
        tracing = find_tracing(self._settings.tracing)
        if tracing is None:
            await sender.send(event, body, NO_TRACE)
            return
        with tracing.delivering(destination.kind, destination.name, event.type) as trace:
            await sender.send(event, body, trace)

    async def close(self) -> None:
        """Close every connection."""
        if self._loop is not asyncio.get_running_loop():
            self._forget()
            return
        for name, used in list(self._open.items()):
            self._discard(name, used)
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_SECONDS)

    def _forget(self) -> None:
        """What belongs to a loop that has ended cannot be closed any more."""
        self._open.clear()
        self._closing.clear()
        self._loop = None

    def _sender(self, stored: StoredDestination) -> _Open:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._forget()
            self._loop = loop
        name = stored.destination.name
        found = self._open.get(name)
        if found is not None and (found.version != stored.version or _broken(found.opening)):
            self._discard(name, found)
            found = None
        if found is None:
            sender = self._make(stored.destination)
            found = _Open(sender, stored.version, loop.create_task(sender.open()))
            found.opening.add_done_callback(_looked_at)
            self._open[name] = found
        if found.timer is not None:
            found.timer.cancel()
            found.timer = None
        return found

    def _make(self, destination: Destination) -> Sender:
        module, _, attribute = SENDERS[destination.kind].partition(":")
        kind: Any = getattr(importlib.import_module(module), attribute)
        if destination.kind in OVER_HTTP:
            made: Sender = kind(destination, allow_private=self._settings.allow_private_webhooks)
        else:
            made = kind(destination)
        return made

    def _rest(self, name: str, used: _Open) -> None:
        """Close it after a while, if nobody uses it meanwhile."""
        if used.users or self._open.get(name) is not used or self._loop is None:
            return
        used.timer = self._loop.call_later(IDLE_SECONDS, self._discard, name, used)

    def _discard(self, name: str, used: _Open) -> None:
        if self._open.get(name) is used:
            del self._open[name]
        if used.timer is not None:
            used.timer.cancel()
            used.timer = None
        task = asyncio.get_running_loop().create_task(_close(used))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close(used: _Open) -> None:
    used.opening.cancel()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await used.opening
    # What goes wrong while it is closed concerns nobody any more.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await used.sender.close()


def _broken(opening: asyncio.Task[None]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def _looked_at(opening: asyncio.Task[None]) -> None:
    if not opening.cancelled():
        opening.exception()  # those who wait for it are told


def _hidden(error: HeadraceError, destination: Destination) -> HeadraceError:
    text = destination.hide(str(error))
    if isinstance(error, RetryLater):
        return RetryLater(text, delay=error.delay)
    return type(error)(text)
