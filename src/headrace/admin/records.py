"""The verbs of an App for dead letters and API keys, which are records beside the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from headrace.admin.publishing import PublishingVerbs

if TYPE_CHECKING:
    from headrace.api_types.requests import Scope
    from headrace.api_types.responses import (
        DeadLetterPage,
        DeadLetterView,
        KeyView,
        NewKey,
        Replayed,
    )
    from headrace.dispatchers.events.dead_letters import DeadLetters
    from headrace.task.app_like import AppLike


class RecordVerbs(PublishingVerbs):
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
        from headrace.admin.views import letter_page  # noqa: PLC0415

        return await letter_page(self._letters, topic, cursor, limit)

    async def dead_letter(self, letter_id: str) -> DeadLetterView:
        """Return one message with all that is known about it."""
        from headrace.admin.views import letter_view  # noqa: PLC0415

        return letter_view(await self._letters.get(letter_id))

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
        self,
        name: str,
        scope: Scope = "read",
        *,
        user: str | None = None,
        queues: Sequence[str] = (),
        rate: float | None = None,
    ) -> NewKey:
        """Create a key for the HTTP API. Its secret is in the answer, and never shown again."""
        from headrace.admin.keys import create_key  # noqa: PLC0415

        key, secret = await create_key(
            self, name=name, scope=scope, user=user, queues=queues, rate=rate
        )
        return key.new_view(secret)

    async def revoke_key(self, key_id: str) -> KeyView:
        """Revoke a key. Revoking it twice is fine."""
        from headrace.admin.keys import revoke_key  # noqa: PLC0415

        return (await revoke_key(self, key_id)).view()
