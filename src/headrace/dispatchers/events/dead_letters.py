"""Messages that made no job: kept with their reason until somebody looks after them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import msgspec

from headrace.api_types.responses import DeadLetterView
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.insert import insert, key_with_time, same_moment
from headrace.dispatchers.events.message_parser import MessageParser, RejectedMessage, bounded
from headrace.errors import (
    HeadraceError,
    InvalidInput,
    MissingEncryptionKey,
    RecordConflict,
    SealedValue,
)
from headrace.model.ids import new_id
from headrace.model.job import Inserted
from headrace.model.sealed import is_sealed, shown_document
from headrace.model.views import Record
from headrace.suggest import similar_or_first
from headrace.task.app_like import AppLike

KIND = "dead-letter"
# Enough for any message that a replay could make a job of, with the default payload limit.
RAW_LIMIT = 1_048_576 + 65_536
# Letters may be large: what is read or written at once has to fit into memory.
PAGE = 50
TOGETHER = 50


class DeadLetterNotFound(HeadraceError):
    """No dead letter has this id; it may have been replayed or removed."""


class DeadLetter(DeadLetterView, kw_only=True):
    """A message that was set aside, as it is stored.

    `raw` is the message itself; `size` tells how long it was, and is more than `raw` has if it had
    to be cut. `known` tells whether `id` is the broker's own name for it, by which a redelivery is
    recognised. `sealed` tells whether it is stored sealed, and shown so.
    """

    kept_bytes: int = 0
    known: bool = True
    sealed: bool = False

    def __post_init__(self) -> None:
        self.kept_bytes = len(self.raw)

    @property
    def cut(self) -> bool:
        """Whether the message was too long to be kept whole."""
        return self.kept_bytes < self.size

    def message(self) -> Message:
        """The message as it came, for another try."""
        return Message(
            body=self.raw,
            topic=self.topic,
            key=self.id,
            partition=self.partition,
            offset=self.offset,
            sent_at=self.sent_at,
        )


class DeadLetters:
    """The place for dead letters in the engine of an App."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._parser = MessageParser(host)

    async def keep(self, adapter: str, messages: Sequence[RejectedMessage]) -> None:
        """Set messages aside durably. One that is delivered again is kept once."""
        for start in range(0, len(messages), TOGETHER):
            part = messages[start : start + TOGETHER]
            await asyncio.gather(*(self._keep(self._letter(adapter, each)) for each in part))

    async def page(self, *, after: str = "", limit: int = PAGE) -> list[DeadLetter]:
        """Up to `limit` dead letters by id, after an id."""
        await self._host.open()
        records = await self._host.engine.record_list(KIND, after=after, limit=min(limit, PAGE))
        return [_read(record) for record in records]

    async def every(self) -> AsyncIterator[DeadLetter]:
        """All of them by id, without holding more than a page."""
        after = ""
        while page := await self.page(after=after):
            for letter in page:
                yield letter
            after = page[-1].id

    async def get(self, letter_id: str) -> DeadLetter:
        """One dead letter, or an error that names the nearest ones."""
        await self._host.open()
        record = await self._host.engine.record_get(KIND, letter_id)
        if record is None:
            known = [letter.id for letter in await self.page()]
            shown = similar_or_first(letter_id, known, first=3)
            raise DeadLetterNotFound(f'no dead letter has the id "{letter_id}"; there are: {shown}')
        return _read(record)

    async def remove(self, letter_id: str) -> None:
        """Forget a dead letter for good."""
        await self.get(letter_id)
        await self._host.engine.record_delete(KIND, letter_id)

    async def replay(self, letter_id: str) -> Inserted:
        """Try the message again; the letter is gone once its job is stored.

        Raises what is wrong with the message, and keeps it, if it still makes no job. Replaying
        twice makes one job.
        """
        letter = self._opened(await self.get(letter_id))
        if letter.cut:
            raise InvalidInput(
                f'dead letter "{letter_id}" cannot be replayed: the message had {letter.size:,} '
                f"bytes and the first {len(letter.raw):,} were kept; send it again"
            )
        message = letter.message()
        job = self._parser.job(message)
        [inserted] = await insert(self._host.engine, [job], [message])
        await self._host.engine.record_delete(KIND, letter_id)
        return inserted

    def _letter(self, adapter: str, each: RejectedMessage) -> DeadLetter:
        message = each.message
        return DeadLetter(
            id=f"{adapter}:{new_id()}" if message.key is None else bounded(message.key),
            adapter=adapter,
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            error=each.error,
            reason=each.reason,
            raw=message.body[:RAW_LIMIT],
            size=len(message.body),
            sent_at=None if message.sent_at is None else round(message.sent_at, 3),
            set_aside_at=datetime.fromtimestamp(self._host.clock.now(), UTC),
            known=message.key is not None,
            sealed=self._parser.is_encrypted(message),
        )

    def _body(self, letter: DeadLetter) -> bytes:
        """Return a letter as it is stored."""
        if not letter.sealed:
            return msgspec.json.encode(letter)
        if self._host.sealing is None:  # it is set aside all the same, but not in plain
            return msgspec.json.encode(msgspec.structs.replace(letter, raw=b""))
        raw = self._host.sealing.message(letter.id, letter.raw)
        return msgspec.json.encode(msgspec.structs.replace(letter, raw=raw))

    def _opened(self, letter: DeadLetter) -> DeadLetter:
        """Return a letter as it came. Raises `MissingEncryptionKey` if it is sealed and the key is
        not here.
        """
        if not letter.sealed or not is_sealed(letter.raw):
            return letter
        if self._host.sealing is None:
            raise MissingEncryptionKey(
                f'dead letter "{letter.id}" is sealed, and this process has no encryption keys; '
                "give it some: HEADRACE_ENCRYPTION_KEYS or HEADRACE_ENCRYPTION_KEY_FILE"
            )
        raw = self._host.sealing.open_message(letter.id, letter.raw)
        return msgspec.structs.replace(letter, raw=raw)

    def shown_message(self, letter: DeadLetter) -> bytes:
        """Return the message as views show it: a sealed one only where `show_sealed` says so."""
        if self._host.settings.show_sealed:
            with contextlib.suppress(SealedValue):
                return self._opened(letter).raw
        return shown_document(letter.raw) if letter.sealed else letter.raw

    async def _keep(self, letter: DeadLetter) -> None:
        engine = self._host.engine
        try:
            await engine.record_put(KIND, letter.id, self._body(letter), version=0)
        except RecordConflict:
            record = await engine.record_get(KIND, letter.id)
            if record is None or same_moment(_read(record).sent_at, letter.sent_at):
                return
            # The topic was made anew and counts from the beginning: it is another message.
            letter.id = key_with_time(letter.id, letter.sent_at)
            await engine.record_put(KIND, letter.id, self._body(letter))


def _read(record: Record) -> DeadLetter:
    try:
        return msgspec.json.decode(record.body, type=DeadLetter)
    except msgspec.DecodeError as error:
        # Written by another version: still to be seen and removed.
        return DeadLetter(
            id=record.key,
            adapter="?",
            topic="?",
            error=type(error).__name__,
            reason=f"this dead letter cannot be read: {error}",
            raw=record.body,
            size=len(record.body) + 1,
            set_aside_at=record.updated_at,
        )
