"""The event dispatcher: messages of a broker become jobs, each message one."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

import msgspec

from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.batch_buffer import Inbox
from headrace.dispatchers.events.batch_writer import Storer
from headrace.dispatchers.events.connections import doors
from headrace.dispatchers.events.message_parser import Intake
from headrace.dispatchers.events.receiver import Reader
from headrace.dispatchers.heartbeat import Presence
from headrace.errors import InvalidSetting
from headrace.model.names import check_name
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

BATCH_SIZE = 2_000
LARGEST_BATCH = 10_000
HOLD_SECONDS = 20.0


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What one dispatcher has done since it started."""

    received: int
    stored: int
    duplicates: int
    set_aside: int
    held: int


class QueueDispatcher:
    """Turns the messages of one broker into jobs.

    A message makes one job, however often it is delivered and however many dispatchers run. The
    broker is told only after the job is stored. A message that makes no job is set aside as a dead
    letter and holds up nobody. While the engine is away, little is taken from the broker and
    nothing is lost.
    """

    def __init__(
        self,
        host: AppLike,
        adapter: QueueAdapter,
        *,
        batch_size: int = BATCH_SIZE,
        hold_seconds: float = HOLD_SECONDS,
        name: str | None = None,
    ) -> None:
        if not 1 <= batch_size <= LARGEST_BATCH:
            raise InvalidSetting(
                f"batch_size must be between 1 and {LARGEST_BATCH}, got {batch_size}"
            )
        if not 0 <= hold_seconds <= 86_400:
            raise InvalidSetting(f"hold_seconds must be between 0 and 86400, got {hold_seconds}")
        self.host = host
        self.adapter = adapter
        ways = doors(host)
        self._inbox = inbox = Inbox(batch_size=batch_size, trays=len(ways))
        gate = asyncio.Event()
        self.reader = Reader(adapter=adapter, intake=Intake(host), inbox=inbox, gate=gate)
        self.storers = [
            Storer(
                door=door,
                adapter=adapter,
                inbox=inbox,
                tray=tray,
                gate=gate,
                hold_seconds=hold_seconds,
            )
            for tray, door in enumerate(ways)
        ]
        self.presence = Presence(
            host=host,
            type="queue",
            adapter=adapter.name,
            report=self.report,
            name=None if name is None else check_name("dispatcher", name),
            on_answer=self._engine_answers,
        )

    @property
    def name(self) -> str:
        """By which it is known to others."""
        return self.presence.dispatcher

    @property
    def running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self.reader.running

    @property
    def healthy(self) -> bool:
        """False while the broker or the engine fails again and again."""
        return self.reader.healthy and all(each.healthy for each in self.storers)

    @property
    def counts(self) -> EventCounts:
        """What it has done so far."""
        return EventCounts(
            received=self.reader.received,
            stored=sum(each.stored for each in self.storers),
            duplicates=sum(each.duplicates for each in self.storers),
            set_aside=sum(each.set_aside for each in self.storers),
            held=len(self._inbox) + sum(each.held for each in self.storers),
        )

    async def lag(self) -> int | None:
        """How many messages are still to become jobs; None if that is not known now."""
        if not self.reader.connected:
            return None
        try:
            return await self.adapter.lag()
        except Exception as error:  # trouble with the broker is told by who receives
            log.debug("The lag of %s is not known: %s", self.adapter.name, error)
            return None

    async def report(self) -> dict[str, object]:
        """What others are told about it."""
        return {
            **msgspec.to_builtins(self.counts),
            "lag": await self.lag(),
            "healthy": self.healthy,
        }

    def _engine_answers(self) -> None:
        for each in self.storers:
            each.retry_now()

    async def start(self) -> None:
        """Begin. A broker or an engine that is away is waited for."""
        for each in self.storers:
            each.start()
        self.reader.start()
        self.presence.start()

    async def stop(self, patience: float = 10.0) -> None:
        """Take no more messages, store those that are here, tell the broker, and leave it."""
        await self.reader.stop()
        await asyncio.gather(*(each.stop(patience) for each in self.storers))
        await self.reader.leave()
        await self.presence.stop()
        log.info("Dispatcher %s has stopped: %s", self.name, self.counts)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
