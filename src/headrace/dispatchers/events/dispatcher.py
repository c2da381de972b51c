"""The event dispatcher: each message of a broker becomes one job."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
from typing import Self

import msgspec

from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.batch_writer import BatchWriter, engine_connections
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.dispatchers.events.receiver import BatchBuffer, Receiver
from headrace.dispatchers.heartbeat import DispatcherHeartbeat
from headrace.errors import (
    EngineRefused,
    EngineUnavailable,
    InvalidSetting,
    MissingEncryptionKey,
)
from headrace.loops.free_memory import memory_given_back
from headrace.loops.signals import check_failures, exit_code, on_stop_signals, wait_checking
from headrace.model.names import check_name
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

BATCH_SIZE = 2_000
LARGEST_BATCH = 10_000
HOLD_SECONDS = 20.0


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a dispatcher has done since it started."""

    received: int
    stored: int
    duplicates: int
    set_aside: int
    held: int


class QueueDispatcher:
    """Turns the messages of one broker into jobs.

    A message makes one job, however often it is delivered and however many dispatchers run. It is
    acknowledged only after the job is stored. A message that makes no job becomes a dead letter and
    delays no other. While the engine is away, few messages are taken from the broker and none is
    lost.
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
        connections = engine_connections(host)
        self._buffer = buffer = BatchBuffer(batch_size=batch_size, groups=len(connections))
        engine_available = asyncio.Event()
        self.receiver = Receiver(
            adapter=adapter,
            parser=MessageParser(host),
            buffer=buffer,
            engine_available=engine_available,
        )
        self.writers = [
            BatchWriter(
                connection=connection,
                adapter=adapter,
                buffer=buffer,
                group=group,
                engine_available=engine_available,
                hold_seconds=hold_seconds,
            )
            for group, connection in enumerate(connections)
        ]
        self.heartbeat = DispatcherHeartbeat(
            host=host,
            type="queue",
            adapter=adapter.name,
            report=self.report,
            name=None if name is None else check_name("dispatcher", name),
            on_answer=self._engine_replied,
        )

    @property
    def name(self) -> str:
        """The name in its record."""
        return self.heartbeat.dispatcher

    @property
    def running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self.receiver.running

    @property
    def healthy(self) -> bool:
        """False while the broker or the engine fails again and again."""
        return self.receiver.healthy and all(each.healthy for each in self.writers)

    @property
    def counts(self) -> EventCounts:
        """Return what it has done so far."""
        return EventCounts(
            received=self.receiver.received,
            stored=sum(each.stored for each in self.writers),
            duplicates=sum(each.duplicates for each in self.writers),
            set_aside=sum(each.set_aside for each in self.writers),
            held=len(self._buffer) + sum(each.held for each in self.writers),
        )

    async def lag(self) -> int | None:
        """Return how many messages are still to become jobs; None if that is not known now."""
        if not self.receiver.connected:
            return None
        try:
            return await self.adapter.lag()
        except Exception as error:  # the receiver reports trouble with the broker
            log.debug("The lag of %s is not known: %s", self.adapter.name, error)
            return None

    async def report(self) -> dict[str, object]:
        """Return what its record says."""
        return {
            **msgspec.to_builtins(self.counts),
            "lag": await self.lag(),
            "healthy": self.healthy,
        }

    def _engine_replied(self) -> None:
        for each in self.writers:
            each.retry_now()

    async def start(self) -> None:
        """Start. Waits in the background for a broker or an engine that is away. Raises
        `MissingEncryptionKey` if there are tasks whose messages it could not seal.
        """
        await self._check_keys()
        for each in self.writers:
            each.start()
        self.receiver.start()
        self.heartbeat.start()

    async def _check_keys(self) -> None:
        sealing = self.host.sealing
        if sealing is not None:
            # In a thread: they may come from a service elsewhere.
            await asyncio.to_thread(getattr, sealing, "keys")
        elif names := sorted(name for name, task in self.host.tasks.items() if task.encrypted):
            raise MissingEncryptionKey(
                f'task "{names[0]}" is encrypted, but this dispatcher has no encryption keys, so '
                "it would set every message for it aside; give it some: HEADRACE_ENCRYPTION_KEYS "
                "or HEADRACE_ENCRYPTION_KEY_FILE"
            )

    async def stop(self, patience: float = 10.0) -> None:
        """Receive no more, store and acknowledge what was received, and disconnect."""
        await self.receiver.stop()
        await asyncio.gather(*(each.stop(patience) for each in self.writers))
        await self.receiver.leave()
        await self.heartbeat.stop()
        log.info("Dispatcher %s has stopped: %s", self.name, self.counts)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


async def run_dispatcher(dispatcher: QueueDispatcher) -> int:
    """Run until SIGTERM or SIGINT, then stop in good order. Return the exit code.

    A second signal cuts the stop short and shows in the exit code; what is in hand then comes
    again, and makes no second job. Raises `WorkerUnhealthy` where `connection_retries` says so, and
    `EngineRefused` at its start if the engine does not let it in.
    """
    stop = asyncio.Event()
    hurry = asyncio.Event()

    def store_what_is_here(number: signal.Signals) -> None:
        log.info("%s: storing what is here", number.name)
        stop.set()

    with (
        on_stop_signals(store_what_is_here, lambda _: hurry.set()) as received,
        memory_given_back(),
    ):
        await _check_engine(dispatcher)
        await dispatcher.start()
        try:
            await wait_checking(stop, functools.partial(_check, dispatcher))
        finally:
            await _stop(dispatcher, hurry)
    return exit_code(received)


async def _check_engine(dispatcher: QueueDispatcher) -> None:
    """Raise if the engine refuses these settings. One that is away is waited for later."""
    try:
        await dispatcher.host.open()
    except EngineRefused:
        raise
    except EngineUnavailable as error:
        log.warning("The engine is away: %s", error)


def _check(dispatcher: QueueDispatcher) -> None:
    """Raise if broker or engine failed more often than is allowed."""
    retries = dispatcher.host.settings.connection_retries
    for each in (dispatcher.receiver, *dispatcher.writers):
        check_failures(each.failures, each.last_error, retries=retries, what=f"{each.name} failed")


async def _stop(dispatcher: QueueDispatcher, hurry: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(dispatcher.stop())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({stopping, hurried}, return_when="FIRST_COMPLETED")
    hurried.cancel()
    if not stopping.done():
        stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
