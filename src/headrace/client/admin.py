"""The verbs of those who run the place: schedules, dead letters, keys, the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from headrace.api_types.requests import (
    EmptyRequest,
    KeyRequest,
    Missed,
    ScheduleRequest,
    Scope,
    TriggerRequest,
)
from headrace.api_types.responses import (
    AuditPage,
    DeadLetterPage,
    DeadLetterView,
    DispatcherView,
    KeyView,
    NewKey,
    Replayed,
    ScheduleTimes,
    ScheduleView,
)
from headrace.client.base import given
from headrace.client.cluster import Surroundings
from headrace.client.job_codec import decode, decode_list
from headrace.client.request import Call
from headrace.model.job import Job
from headrace.model.names import check_name, check_text

T = TypeVar("T")


class Administration(Surroundings):
    """A server, as somebody with a key of scope admin sees it. Looking needs scope read."""

    # -- schedules -----------------------------------------------------------------------------

    async def schedules(self) -> Sequence[ScheduleView]:
        """Every schedule in words, with its next times and what became of its last jobs."""
        content = await self._read("/schedules")
        return decode_list(content, "schedules", ScheduleView, "a list of schedules")

    async def schedule(self, name: str) -> ScheduleView:
        """One schedule. Raises `UnknownSchedule`."""
        return decode(await self._read(_schedule(name)), ScheduleView, "a schedule")

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
        # The same twice is the same once.
        return await self._change("PUT", _schedule(name), ScheduleView, asked, safe=True)

    async def remove_schedule(self, name: str) -> None:
        """Forget a schedule. Jobs that it has made stay."""
        await self._change("DELETE", _schedule(name), dict[str, Any])

    async def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView:
        """Let a schedule fire, or not. Times while it was disabled are not made up for."""
        verb = "enable" if enabled else "disable"
        return await self._change(
            "POST", f"{_schedule(name)}/{verb}", ScheduleView, EmptyRequest(), safe=True
        )

    async def trigger_schedule(self, name: str, *, force: bool = False) -> Job:
        """Make a job of a schedule now; with `force` also while one of it is unfinished."""
        return await self._steer(f"{_schedule(name)}/trigger", TriggerRequest(force=force))

    async def next_times(self, name: str, count: int = 5) -> ScheduleTimes:
        """When a schedule fires next."""
        content = await self._read(f"{_schedule(name)}/next", {"count": count})
        return decode(content, ScheduleTimes, "times of a schedule")

    # -- dispatchers and dead letters ----------------------------------------------------------

    async def dispatchers(self) -> Sequence[DispatcherView]:
        """Who makes jobs by the clock or of messages, and how far behind they are."""
        content = await self._read("/dispatchers")
        return decode_list(content, "dispatchers", DispatcherView, "a list of dispatchers")

    async def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage:
        """Messages that made no job, by id, with the reason but without the message itself."""
        params = given({"topic": topic, "cursor": cursor, "limit": limit})
        return decode(await self._read("/dead-letters", params), DeadLetterPage, "dead letters")

    async def dead_letter(self, letter_id: str) -> DeadLetterView:
        """One message with all that is known about it. Raises `NotFound`."""
        return decode(await self._read(_letter(letter_id)), DeadLetterView, "a dead letter")

    async def replay_dead_letter(self, letter_id: str) -> Replayed:
        """Try a message again. It is gone once its job is stored; if it makes none, it stays."""
        # Replaying twice makes one job, but the second time nothing is found.
        return await self._change("POST", f"{_letter(letter_id)}/replay", Replayed, EmptyRequest())

    async def remove_dead_letter(self, letter_id: str) -> None:
        """Forget a message for good."""
        await self._change("DELETE", _letter(letter_id), dict[str, Any])

    # -- keys and the audit --------------------------------------------------------------------

    async def keys(self) -> Sequence[KeyView]:
        """All keys, also revoked ones; never their secrets."""
        return decode_list(await self._read("/keys"), "keys", KeyView, "a list of keys")

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
        return await self._change("POST", "/keys", NewKey, asked)

    async def revoke_key(self, key_id: str) -> KeyView:
        """Let a key be refused from now on. Revoking twice is fine."""
        return await self._change("DELETE", f"/keys/{quote(key_id, safe='')}", KeyView, safe=True)

    async def audit(self, *, cursor: str | None = None, limit: int = 50) -> AuditPage:
        """Every change that was made over the API, the newest first."""
        params = given({"cursor": cursor, "limit": limit})
        return decode(await self._read("/audit", params), AuditPage, "a list of changes")

    async def _change(
        self,
        method: str,
        path: str,
        kind: type[T],
        asked: msgspec.Struct | None = None,
        *,
        safe: bool = False,
    ) -> T:
        body = None if asked is None else msgspec.json.encode(asked)
        answer = await self._transport.send(Call(method=method, path=path, body=body, safe=safe))
        return decode(answer.content, kind, "an answer to this change")


def _schedule(name: str) -> str:
    return f"/schedules/{quote(check_name('schedule', name), safe='')}"


def _letter(letter_id: str) -> str:
    return f"/dead-letters/{quote(check_text('dead letter', letter_id))}"
