"""Messages that made no job, by cause: found within a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from hashlib import sha256

import msgspec

from headrace.api_types.responses import DeadLetterSummary
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.model.fingerprint import fingerprint
from headrace.server.service import Service

# For one page of a list, and for the groups: what is further has to be asked for.
LOOK = 1_000
COUNTED = 5_000
COUNT_SECONDS = 2.0
FRESH_SECONDS = 5.0


def group_of(letter: DeadLetterSummary) -> str:
    """Return what letters with the same cause share: adapter, topic, and the reason without what
    differs from one message to the next.
    """
    cause = fingerprint(letter.error, letter.reason)
    text = "\0".join((letter.adapter, letter.topic, cause))
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class LetterGroup(msgspec.Struct, kw_only=True):
    """Letters with one cause. `reason` is that of the first."""

    id: str
    adapter: str
    topic: str
    error: str
    reason: str
    count: int = 0
    first: datetime
    last: datetime


class LetterGroups(msgspec.Struct, frozen=True, kw_only=True):
    """All groups, those with the most letters first; not `complete` if some were not counted."""

    groups: list[LetterGroup]
    count: int
    complete: bool


class LetterPage(msgspec.Struct, frozen=True):
    """Some letters by id; `cursor` is where to go on."""

    letters: list[DeadLetterSummary]
    cursor: str | None


class LetterFinder:
    """Finds letters. They are counted every few seconds at most, however many people look."""

    def __init__(self, service: Service) -> None:
        self._letters = DeadLetters(service.app)
        self._reason = service.answers.reason
        self._counting: asyncio.Task[LetterGroups] | None = None
        self._counted_at = float("-inf")

    async def groups(self) -> LetterGroups:
        """Return the groups as they were a few seconds ago at most."""
        if self._counting is None or time.monotonic() - self._counted_at > FRESH_SECONDS:
            self._counted_at = time.monotonic()
            self._counting = asyncio.create_task(self._count(), name="headrace dead letters")
        try:
            # One that is cancelled must not take along the others who wait for the same.
            return await asyncio.shield(self._counting)
        except Exception:
            self._counting = None
            raise

    def changed(self) -> None:
        """Count again at the next look."""
        self._counting = None

    async def page(self, group: str | None, *, cursor: str, limit: int) -> LetterPage:
        """Return letters of a group, or all. The work is bounded: a page may be short although its
        cursor leads to more.
        """
        found: list[DeadLetterSummary] = []
        looked = 0
        async for letter in self.after(cursor):
            if len(found) == limit or looked == LOOK:
                return LetterPage(found, cursor)
            looked += 1
            cursor = letter.id
            if group in (None, group_of(letter)):
                found.append(letter)
        return LetterPage(found, None)

    async def after(self, cursor: str) -> AsyncIterator[DeadLetterSummary]:
        """Yield all letters after an id, with reasons as callers may see them: what is hidden in
        a reason is known from the message.
        """
        while some := await self._letters.page(after=cursor):
            for letter in some:
                letter.reason = self._reason(letter.reason, letter.raw)
                yield letter
            cursor = some[-1].id

    async def _count(self) -> LetterGroups:
        groups: dict[str, LetterGroup] = {}
        counted, ends = 0, time.monotonic() + COUNT_SECONDS
        complete = True
        async for letter in self.after(""):
            if counted == COUNTED or time.monotonic() > ends:
                complete = False
                break
            counted += 1
            at = letter.set_aside_at
            group = groups.get(name := group_of(letter))
            if group is None:
                group = groups[name] = LetterGroup(
                    id=name,
                    adapter=letter.adapter,
                    topic=letter.topic,
                    error=letter.error,
                    reason=letter.reason,
                    first=at,
                    last=at,
                )
            group.count += 1
            group.first, group.last = min(group.first, at), max(group.last, at)
        ordered = sorted(groups.values(), key=lambda each: (-each.count, each.id))
        return LetterGroups(groups=ordered, count=counted, complete=complete)
