"""The verbs of those who run the place, for code without an event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.api_types.requests import Missed, Scope
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
from headrace.client.admin import Administration
from headrace.loop_thread import LoopThread
from headrace.model.job import Job


class SyncAdministration:
    """The verbs of `Administration`, blocking."""

    _admin: Administration
    _thread: LoopThread

    def schedules(self) -> Sequence[ScheduleView]:
        """Every schedule in words, with its next times and what became of its last jobs."""
        return self._thread.run(self._admin.schedules())

    def schedule(self, name: str) -> ScheduleView:
        """One schedule."""
        return self._thread.run(self._admin.schedule(name))

    def put_schedule(
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
        """Add a schedule, or change the one of this name."""
        return self._thread.run(
            self._admin.put_schedule(
                name,
                expression,
                task,
                tz=tz,
                params=params,
                allow_overlap=allow_overlap,
                enabled=enabled,
                missed=missed,
            )
        )

    def remove_schedule(self, name: str) -> None:
        """Forget a schedule. Jobs that it has made stay."""
        self._thread.run(self._admin.remove_schedule(name))

    def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView:
        """Let a schedule fire, or not."""
        return self._thread.run(self._admin.enable_schedule(name, enabled))

    def trigger_schedule(self, name: str, *, force: bool = False) -> Job:
        """Make a job of a schedule now."""
        return self._thread.run(self._admin.trigger_schedule(name, force=force))

    def next_times(self, name: str, count: int = 5) -> ScheduleTimes:
        """When a schedule fires next."""
        return self._thread.run(self._admin.next_times(name, count))

    def dispatchers(self) -> Sequence[DispatcherView]:
        """Who makes jobs by the clock or of messages, and how far behind they are."""
        return self._thread.run(self._admin.dispatchers())

    def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage:
        """Messages that made no job, by id."""
        return self._thread.run(self._admin.dead_letters(topic=topic, cursor=cursor, limit=limit))

    def dead_letter(self, letter_id: str) -> DeadLetterView:
        """One message with all that is known about it."""
        return self._thread.run(self._admin.dead_letter(letter_id))

    def replay_dead_letter(self, letter_id: str) -> Replayed:
        """Try a message again."""
        return self._thread.run(self._admin.replay_dead_letter(letter_id))

    def remove_dead_letter(self, letter_id: str) -> None:
        """Forget a message for good."""
        self._thread.run(self._admin.remove_dead_letter(letter_id))

    def keys(self) -> Sequence[KeyView]:
        """All keys, also revoked ones; never their secrets."""
        return self._thread.run(self._admin.keys())

    def create_key(
        self,
        name: str,
        scope: Scope = "read",
        *,
        user: str | None = None,
        queues: Sequence[str] = (),
        rate: float | None = None,
    ) -> NewKey:
        """Make a key. Its secret is in the answer, and never shown again."""
        return self._thread.run(
            self._admin.create_key(name, scope, user=user, queues=queues, rate=rate)
        )

    def revoke_key(self, key_id: str) -> KeyView:
        """Let a key be refused from now on."""
        return self._thread.run(self._admin.revoke_key(key_id))

    def audit(self, *, cursor: str | None = None, limit: int = 50) -> AuditPage:
        """Every change that was made over the API, the newest first."""
        return self._thread.run(self._admin.audit(cursor=cursor, limit=limit))
