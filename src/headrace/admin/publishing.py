"""The verbs of an App for events that it publishes, and for their destinations."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.app_lifecycle import AppLifecycle
from headrace.errors import InvalidInput, InvalidSetting
from headrace.task.codec import encode_body

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.api_types.publishing import DestinationView, EventTypeView, NewDestination
    from headrace.model.job import Job, NewJob
    from headrace.publishing.destinations import Destination
    from headrace.publishing.tasks import Publishing
    from headrace.task.app_like import AppLike


class PublishingVerbs(AppLifecycle):
    """Published events and destinations."""

    @functools.cached_property
    def _publishing(self) -> Publishing:
        from headrace.publishing.tasks import Publishing  # noqa: PLC0415 - many publish nothing

        return Publishing(cast("AppLike", self))  # nothing but an App has these verbs

    async def close(self) -> None:
        """Close every connection. The App can be opened again. Those who wait for a result, or for
        the App to be opened, are told so by an error.
        """
        if "_publishing" in self.__dict__:
            await self._publishing.deliveries.close()
        await super().close()

    # -- events --------------------------------------------------------------------------------

    def event_type(self, name: str, model: Any, *, summary: str = "") -> None:
        """Declare a type of events that jobs publish, by a msgspec, pydantic or dataclass type.
        The version is part of the name: "document.processed.v1".
        """
        self._publishing.types.declare(name, model, summary)

    def event_job(
        self,
        event_type: str,
        body: bytes,
        key: str | None,
        job_id: str | None,
        *,
        sealed: bool = False,
    ) -> NewJob:
        """Return the job that publishes an event; `body` is JSON, `job_id` the job that wants it.
        With `sealed` the event is stored sealed. Raises `UnknownEventType`, and `InvalidArguments`
        for a body that does not fit.
        """
        return self._publishing.event_job(event_type, body, key, job_id, sealed=sealed)

    async def publish(
        self, event_type: str, body: Any, key: str | None = None, *, conn: Any = None
    ) -> str:
        """Publish an event from code outside of jobs, and return its id. With `conn` it is part of
        your PostgreSQL transaction. In a handler use `ctx.publish`.
        """
        encoded = encode_body(event_type, body)
        job = self.event_job(event_type, encoded, key, None, sealed=self.encrypt_all)
        await cast("AppLike", self).enqueue_job(job, connection=conn)
        return job.id

    async def event_types(self) -> Sequence[EventTypeView]:
        """Return all types of events that programs have declared on this store, by name."""
        from headrace.publishing.events import stored_types  # noqa: PLC0415

        await self.open()
        return await stored_types(self._engine)

    async def _store_event_types(self) -> None:
        if "_publishing" in self.__dict__:
            await self._publishing.types.store(self._engine, self.clock.utcnow())

    # -- destinations --------------------------------------------------------------------------

    async def destinations(self) -> Sequence[DestinationView]:
        """Return all destinations, by name, without their secrets."""
        return [each.view() for each in await self._publishing.records.all()]

    async def destination(self, name: str) -> DestinationView:
        """Return one destination without its secrets. Raises `UnknownDestination`."""
        return (await self._publishing.records.get(name)).view()

    async def put_destination(
        self,
        name: str,
        kind: str,
        options: Mapping[str, Any],
        *,
        types: Sequence[str] = ("*",),
        secret: str | None = None,
        retries: int = 10,
        replace: bool = True,
        source: str = "app",
    ) -> NewDestination:
        """Add a destination, or change the one of this name. The secret of a webhook is in the
        answer where it is new, and never shown again.
        """
        from headrace.publishing import destinations  # noqa: PLC0415

        wanted = destinations.make_destination(
            name,
            kind,
            dict(options),
            types=types,
            retries=retries,
            origin=source,
            now=self.clock.utcnow(),
        )
        if secret is not None and kind != "webhook":
            raise InvalidInput(f"a secret is for webhooks; {kind} has options for its own")
        shown: list[str] = []

        def change(before: Destination | None) -> Destination:
            if before is not None and not replace:
                raise InvalidSetting(
                    f"a destination {name!r} exists already; choose another name, or replace it "
                    "(--replace)"
                )
            kept = before.secrets if before is not None and before.kind == kind else ()
            shown.clear()
            if kind == "webhook" and (secret is not None or not kept):
                shown.append(destinations.check_secret(secret or destinations.new_secret()))
                kept = tuple(shown)
            created = wanted.created_at if before is None else before.created_at
            return msgspec.structs.replace(wanted, secrets=kept, created_at=created)

        made = await self._publishing.records.change(name, change)
        return _with_secret(made, shown[0] if shown else None)

    async def remove_destination(self, name: str) -> None:
        """Remove a destination. What was not delivered there yet is dropped."""
        await self._publishing.records.remove(name)

    async def enable_destination(self, name: str, enabled: bool = True) -> DestinationView:
        """Let events go to a destination, or not. Events that are published meanwhile are not made
        up for; deliveries that wait fail, and can be retried.
        """
        reason = None if enabled else "disabled by hand"
        return (await self._publishing.records.enable(name, enabled, reason)).view()

    async def rotate_destination(self, name: str, *, finish: bool = False) -> NewDestination:
        """Give a webhook a second secret, which is in the answer; both sign until `finish`."""
        from headrace.publishing.destinations import new_secret  # noqa: PLC0415

        secret = None if finish else new_secret()

        def change(before: Destination) -> Destination:
            if before.kind != "webhook":
                raise InvalidInput(f"destination {name!r} is no webhook: it has no secret to sign")
            kept = before.secrets[:1] if secret is None else (secret, *before.secrets[:1])
            now = self.clock.utcnow()
            return msgspec.structs.replace(before, secrets=kept, changed_at=now)

        return _with_secret(await self._publishing.records.update(name, change), secret)

    async def apply_destinations(self, path: Path) -> Sequence[str]:
        """Store the destinations of a file, and remove those that it had before and has no more.
        Return the names of those that were changed.
        """
        from headrace.publishing.file import ORIGIN, read_destinations  # noqa: PLC0415

        wanted = read_destinations(path, now=self.clock.utcnow())
        return await self._publishing.records.apply(wanted, ORIGIN)

    async def test_destination(self, name: str) -> Job:
        """Send a test event to one destination, and return the job that delivers it. It is not
        tried again.
        """
        from headrace.model.ids import new_id  # noqa: PLC0415
        from headrace.publishing.events import TEST_TYPE, PublishedEvent  # noqa: PLC0415

        destination = await self._publishing.records.get(name)
        event = PublishedEvent(
            id=new_id(),
            type=TEST_TYPE,
            time=self.clock.utcnow(),
            data=msgspec.Raw(b'{"message":"a test of this destination"}'),
        )
        job = self._publishing.delivery_job(destination, event)
        job.max_attempts = 1
        return await cast("AppLike", self).enqueue_job(job)


def _with_secret(made: Destination, secret: str | None) -> NewDestination:
    from headrace.api_types.publishing import NewDestination  # noqa: PLC0415

    return NewDestination(**msgspec.structs.asdict(made.view()), secret=secret)
