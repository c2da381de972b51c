"""Who sent a request, and what the key of that caller is bound to."""

from __future__ import annotations

import msgspec

from headrace.api_types.requests import Scope
from headrace.errors import JobNotFound
from headrace.model.job import Job, JobFilter
from headrace.server.auth.key_space import as_given, in_space
from headrace.server.http.problems import forbidden, invalid


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent the request. `queues` empty means all, `user` None anybody."""

    name: str
    scope: Scope
    key_id: str | None = None
    user: str | None = None
    queues: frozenset[str] = frozenset()

    @property
    def bound(self) -> bool:
        """Whether the key is for some queues, or for one user."""
        return bool(self.queues) or self.user is not None

    def may_touch(self, queue: str) -> bool:
        """Return whether this caller may use a queue."""
        return not self.queues or queue in self.queues

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that this caller may not use."""
        if not self.may_touch(queue):
            raise forbidden(
                f"this key may not use queue {queue!r}",
                f"use one of {', '.join(sorted(self.queues))}, or a key for this queue",
                field="queue",
                value=queue,
            )

    def check_unrestricted(self, what: str) -> None:
        """Refuse a key that is for some queues only."""
        if self.queues:
            raise forbidden(
                f"this key is for some queues only, and {what} concern all",
                "use a key without a restriction to queues",
            )

    def check_for_all(self, what: str) -> None:
        """Refuse a key that acts for one user to change what concerns all."""
        if self.user is not None:
            raise forbidden(
                f"this key acts for user {self.user!r} only, and {what} concerns all users",
                "use a key without a user",
            )

    def check_user(self, field: str, given: object) -> None:
        """Refuse what names another user than the one that this key acts for."""
        if str(given) != self.user:
            raise forbidden(
                f"this key acts for user {self.user!r} only",
                f"leave {field.rpartition('.')[2]} out, or use a key of that user",
                field=field,
                value=given,
            )

    def check_job(self, job: Job) -> Job:
        """A job of another queue does not exist for this caller."""
        if not self.may_touch(job.queue):
            raise JobNotFound(f"no job has the id {job.id}")
        return job

    def narrowed(self, wanted: JobFilter) -> JobFilter:
        """The same filter, within what this caller may see."""
        for queue in wanted.queues if self.queues else ():
            self.check_queue(queue)
        if self.queues and not wanted.queues:
            wanted = msgspec.structs.replace(wanted, queues=tuple(sorted(self.queues)))
        if wanted.key is None or not self.bound:
            return wanted
        if self.queues and len(wanted.queues) != 1:
            raise invalid(
                "this key is for several queues, and each has idempotency keys of its own; "
                "name one queue as well",
                field="key",
            )
        queue = wanted.queues[0] if self.queues else ""
        return msgspec.structs.replace(wanted, key=self.stored_key(wanted.key, queue))

    def stored_key(self, key: str, queue: str) -> str:
        """Return the idempotency key with which a job of this caller in a queue is stored."""
        return in_space(key, queue if self.queues else None, self.user)

    def given_key(self, stored: str, queue: str) -> str:
        """Return a stored key as this caller gave it."""
        return as_given(stored, queue if self.queues else None, self.user)
