"""The contract between a broker and the dispatcher: what an adapter promises.

An adapter knows its broker and nothing of jobs. The dispatcher takes messages from `receive`,
stores them, and then says `complete`; what it could not store it gives back with `abandon`. A
broker may deliver a message any number of times: its `key` tells that it is the same one.

Rules that hold for all adapters:

* A message that was handed out and not completed is delivered again, here or elsewhere: after
  `abandon` at once, after a `disconnect` or a crash as soon as the broker notices.
* Messages are completed in the order in which they were handed out, so completing one may complete
  those before it from the same partition.
* Completing or abandoning a message that the broker has meanwhile given to somebody else changes
  nothing and is no error.
* However long the caller waits between two batches, the adapter keeps its membership.
* Any exception of `connect` or `receive` means trouble with the broker. The dispatcher logs it,
  calls `disconnect`, waits and begins again with `connect`.

`tests/dispatchers/events/test_contract.py` is the suite that every adapter passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from headrace.errors import EngineUnavailable, MissingDriver


class BrokerUnavailable(EngineUnavailable):
    """The broker cannot be reached now."""


@contextmanager
def driver_for(broker: str, extra: str) -> Iterator[None]:
    """Say what to install if the driver, which is imported inside, is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDriver(
            f'The driver "{error.name}" for {broker} is not installed. '
            f'Install it with: pip install "headrace[{extra}]"'
        ) from None


class Message(msgspec.Struct, kw_only=True, gc=False):
    """One message as it came from the broker.

    `key` is the same however often the message is delivered, and no other message's; None if the
    broker has no message id: redeliveries are then not recognised. `sent_at` is in seconds since
    the epoch, as the broker keeps it. `headers` has those that its sender gave it, by name; of
    these only the trace context is looked at. `fault` tells that the adapter could not read it: it
    will be set aside. `receipt` is the adapter's own.
    """

    body: bytes
    topic: str
    key: str | None
    partition: int | None = None
    offset: int | str | None = None
    sent_at: float | None = None
    fault: str | None = None
    receipt: Any = None
    headers: Mapping[str, Any] | None = None


class QueueAdapter(ABC):
    """A broker, as the dispatcher knows it. Its keyword arguments are the options in queue.yaml."""

    name: str = "queue"
    """How dead letters and logs call it."""

    sends_ahead: bool = False
    """Whether the broker sends messages before they are asked for, which nobody else gets until
    they are given back. The dispatcher disconnects such an adapter while its engine is away."""

    @abstractmethod
    async def connect(self) -> None:
        """Connect to the broker and take part in whatever shares out its messages."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Leave. What was not completed is delivered again. Doing it twice is fine."""

    @abstractmethod
    def receive(self) -> AsyncIterator[Sequence[Message]]:
        """Messages in batches, for as long as the connection lives; waits while there are none.

        A batch is never empty. The iterator may be dropped between two batches.
        """

    @abstractmethod
    async def complete(self, messages: Sequence[Message]) -> None:
        """Tell the broker that these are done with. They are stored by now."""

    @abstractmethod
    async def abandon(self, messages: Sequence[Message]) -> None:
        """Give these back to be delivered again, here or elsewhere."""

    @abstractmethod
    async def lag(self) -> int | None:
        """How many messages wait at the broker or are not completed yet; None if it cannot tell."""
