"""What `headrace dead-letters` asks for: of an engine, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from headrace.api_types.responses import DeadLetterView
from headrace.app import App
from headrace.cli.session import Session
from headrace.client import Client
from headrace.dispatchers.events.dead_letters import DeadLetter, DeadLetters

PAGE = 200


class LetterVerbs(Protocol):
    """Dead letters, wherever they are. Of many there is everything but the message itself."""

    def now(self) -> datetime:
        """The time that ages are counted from."""

    def every(self, topic: str | None) -> AsyncIterator[DeadLetterView]:
        """All of them, or those of a topic, by id."""

    async def get(self, letter_id: str) -> DeadLetterView:
        """One, with the message."""

    async def replay(self, letter_id: str) -> dict[str, Any]:
        """Try it again. Answers the job."""

    async def remove(self, letter_id: str) -> dict[str, Any]:
        """Forget it."""


class DirectLetters:
    """The verbs on an engine."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._letters = DeadLetters(app)

    def now(self) -> datetime:
        return self._app.clock.utcnow()

    async def every(self, topic: str | None) -> AsyncIterator[DeadLetterView]:
        async for letter in self._letters.every():
            if topic is None or letter.topic == topic:
                yield _view(letter)

    async def get(self, letter_id: str) -> DeadLetterView:
        return _view(await self._letters.get(letter_id))

    async def replay(self, letter_id: str) -> dict[str, Any]:
        job = await self._letters.replay(letter_id)
        return {"job_id": job.id, "created": job.created}

    async def remove(self, letter_id: str) -> dict[str, Any]:
        await self._letters.remove(letter_id)
        return {"removed": True}


class RemoteLetters:
    """The verbs on a server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.get = client.dead_letter

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def every(self, topic: str | None) -> AsyncIterator[DeadLetterView]:
        cursor = None
        while True:
            page = await self._client.dead_letters(topic=topic, cursor=cursor, limit=PAGE)
            for letter in page.dead_letters:
                yield letter
            cursor = page.cursor
            if cursor is None:
                return

    async def replay(self, letter_id: str) -> dict[str, Any]:
        replayed: dict[str, Any] = msgspec.to_builtins(
            await self._client.replay_dead_letter(letter_id)
        )
        return replayed

    async def remove(self, letter_id: str) -> dict[str, Any]:
        await self._client.remove_dead_letter(letter_id)
        return {"removed": True}


@asynccontextmanager
async def letter_verbs(session: Session, *, needs_app: bool = False) -> AsyncIterator[LetterVerbs]:
    """On the server of API_URL, or on the engine; a replay there needs the tasks of the App."""
    if session.remote:
        async with session.client() as client:
            yield RemoteLetters(client)
    elif needs_app:
        async with session.load_app() as app:
            yield DirectLetters(app)
    else:
        async with session.store() as app:
            yield DirectLetters(app)


def _view(letter: DeadLetter) -> DeadLetterView:
    fields = msgspec.structs.asdict(letter)
    del fields["known"]
    return DeadLetterView(**fields, kept_bytes=len(letter.raw))
