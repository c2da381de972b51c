"""Verbs for administrators: schedules, dispatchers, dead letters, keys, the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from headrace.api_types.requests import (
    KeyRequest,
    Missed,
    ScheduleRequest,
    Scope,
    TriggerRequest,
)
from headrace.api_types.responses import (
    AuditPage,
    DeadLetterPage,
    DeadLetterRemoved,
    DeadLetterView,
    DispatcherView,
    KeyView,
    NewKey,
    Replayed,
    ScheduleRemoved,
    ScheduleTimes,
    ScheduleView,
)
from headrace.client.base import BaseClient, given, path_to
from headrace.model.job import Job
from headrace.model.names import check_text


class AdminApi(BaseClient):
    """A server, for keys of scope admin; reading needs scope read."""

    # -- schedules -----------------------------------------------------------------------------

    async def schedules(self) -> Sequence[ScheduleView]:
        """Every schedule in words, with its next times and its last jobs."""
        return await self._list("/schedules", "schedules", ScheduleView)

    async def schedule(self, name: str) -> ScheduleView:
        """One schedule. Raises `UnknownSchedule`."""
        return await self._get(_schedule(name), ScheduleView, "a schedule")

    async def put_schedule(
        self,
        name: str,
        expression: str,
        task: str,
        *,
        tz: str = "UTC",
        params: Mapping[str, Any] | None = None,
        allow_overlap: bool = True,
        enabled: bool = True,
        missed: Missed = "latest",
    ) -> ScheduleView:
        """Add a schedule, or change the one of this name. It fires from its next time on."""
        asked = ScheduleRequest(
            expression=expression,
            task=task,
            tz=tz,
            params=dict(params or {}),
            allow_overlap=allow_overlap,
            enabled=enabled,
            missed=missed,
        )
        return await self._send("PUT", _schedule(name), ScheduleView, asked, idempotent=True)

    async def remove_schedule(self, name: str) -> None:
        """Remove a schedule. Jobs that it has made stay."""
        await self._send("DELETE", _schedule(name), ScheduleRemoved, None)

    async def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView:
        """Enable or disable a schedule. Times while it was disabled are not made up for."""
        verb = "enable" if enabled else "disable"
        return await self._send("POST", f"{_schedule(name)}/{verb}", ScheduleView, idempotent=True)

    async def trigger_schedule(self, name: str, *, force: bool = False) -> Job:
        """Make a job of a schedule now; with `force` also while one of it is unfinished."""
        return await self._change_job(f"{_schedule(name)}/trigger", TriggerRequest(force=force))

    async def next_times(self, name: str, count: int = 5) -> ScheduleTimes:
        """When a schedule fires next."""
        path = f"{_schedule(name)}/next"
        return await self._get(path, ScheduleTimes, "times of a schedule", {"count": count})

    # -- dispatchers and dead letters ----------------------------------------------------------

    async def dispatchers(self) -> Sequence[DispatcherView]:
        """Cron and event dispatchers, and how far behind they are."""
        return await self._list("/dispatchers", "dispatchers", DispatcherView)

    async def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage:
        """Messages that made no job, by id, with the reason but without the message itself."""
        params = given(topic=topic, cursor=cursor, limit=limit)
        return await self._get("/dead-letters", DeadLetterPage, "dead letters", params)

    async def dead_letter(self, letter_id: str) -> DeadLetterView:
        """One message with its content. Raises `NotFound`."""
        return await self._get(_letter(letter_id), DeadLetterView, "a dead letter")

    async def replay_dead_letter(self, letter_id: str) -> Replayed:
        """Try a message again. It is gone once its job is stored; if it makes none, it stays."""
        # Replaying twice makes one job, but the second time nothing is found.
        return await self._send("POST", f"{_letter(letter_id)}/replay", Replayed)

    async def remove_dead_letter(self, letter_id: str) -> None:
        """Remove a message for good."""
        await self._send("DELETE", _letter(letter_id), DeadLetterRemoved, None)

    # -- keys and the audit --------------------------------------------------------------------

    async def keys(self) -> Sequence[KeyView]:
        """All keys, also revoked ones; never their secrets."""
        return await self._list("/keys", "keys", KeyView)

    async def create_key(
        self,
        name: str,
        scope: Scope = "read",
        *,
        user: str | None = None,
        queues: Sequence[str] = (),
        rate: float | None = None,
    ) -> NewKey:
        """Make a key. Its secret is in the answer, and never shown again."""
        asked = KeyRequest(name=name, scope=scope, user=user, queues=list(queues), rate=rate)
        return await self._send("POST", "/keys", NewKey, asked)

    async def revoke_key(self, key_id: str) -> KeyView:
        """Revoke a key: it is refused from now on. Revoking twice is fine."""
        return await self._send(
            "DELETE", f"/keys/{quote(key_id, safe='')}", KeyView, None, idempotent=True
        )

    async def audit(self, *, cursor: str | None = None, limit: int = 50) -> AuditPage:
        """Every change that was made over the API, the newest first."""
        params = given(cursor=cursor, limit=limit)
        return await self._get("/audit", AuditPage, "a list of changes", params)


def _schedule(name: str) -> str:
    return path_to("schedules", "schedule", name)


def _letter(letter_id: str) -> str:
    return f"/dead-letters/{quote(check_text('dead letter', letter_id))}"
