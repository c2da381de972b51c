"""The verbs of an App for dead letters and API keys, which are records beside the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from headrace.admin.alerts import AlertVerbs

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.api_types.requests import KeyLimits, Scope
    from headrace.api_types.responses import (
        DeadLetterPage,
        DeadLetterView,
        KeyView,
        NewKey,
        Replayed,
    )
    from headrace.dispatchers.events.dead_letters import DeadLetter, DeadLetters
    from headrace.task.app_like import AppLike


class RecordVerbs(AlertVerbs):
    """Dead letters and API keys."""

    # -- dead letters --------------------------------------------------------------------------

    @property
    def _letters(self) -> DeadLetters:
        from headrace.dispatchers.events.dead_letters import DeadLetters  # noqa: PLC0415

        return DeadLetters(cast("AppLike", self))  # nothing but an App has these verbs

    async def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage:
        """Return messages that made no job, by id, with the reason but without the message."""
        from headrace.api_types.responses import DeadLetterPage  # noqa: PLC0415

        found: list[DeadLetterView] = []
        letters, after = self._letters, cursor or ""
        while len(found) < limit and (some := await letters.page(after=after)):
            for letter in some:
                after = letter.id
                if topic in (None, letter.topic):
                    found.append(_view(letter, raw=b""))
                if len(found) == limit:
                    break
        more = len(found) == limit and await letters.page(after=after, limit=1)
        return DeadLetterPage(found, after if more else None)

    async def dead_letter(self, letter_id: str) -> DeadLetterView:
        """Return one message with all that is known about it."""
        letters = self._letters
        letter = await letters.get(letter_id)
        return _view(letter, raw=letters.shown_message(letter))

    async def replay_dead_letter(self, letter_id: str) -> Replayed:
        """Try a message again. It is gone once its job is stored; if it makes none, it stays."""
        from headrace.api_types.responses import Replayed  # noqa: PLC0415

        job = await self._letters.replay(letter_id)
        return Replayed(job.id, job.created)

    async def remove_dead_letter(self, letter_id: str) -> None:
        """Delete a message for good."""
        await self._letters.remove(letter_id)

    # -- API keys ------------------------------------------------------------------------------

    async def keys(self) -> Sequence[KeyView]:
        """Return all keys, also revoked ones; never their secrets."""
        from headrace.admin.keys import list_keys  # noqa: PLC0415

        return [key.view() for key in await list_keys(self)]

    async def create_key(
        self, name: str, scope: Scope = "read", **limits: Unpack[KeyLimits]
    ) -> NewKey:
        """Create a key for the HTTP API. Its secret is in the answer, and never shown again."""
        from headrace.admin.keys import create_key  # noqa: PLC0415

        key, secret = await create_key(self, name=name, scope=scope, **limits)
        return key.new_view(secret)

    async def revoke_key(self, key_id: str) -> KeyView:
        """Revoke a key. Revoking it twice is fine."""
        from headrace.admin.keys import revoke_key  # noqa: PLC0415

        return (await revoke_key(self, key_id)).view()


def _view(letter: DeadLetter, *, raw: bytes) -> DeadLetterView:
    """Return a dead letter with this of the message in it."""
    from headrace.api_types.responses import DeadLetterView  # noqa: PLC0415

    fields = msgspec.structs.asdict(letter)
    del fields["known"], fields["sealed"]
    return DeadLetterView(**fields | {"raw": raw})
