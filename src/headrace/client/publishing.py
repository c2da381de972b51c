"""Verbs for published events: their types and destinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.api_types.publishing import (
    DestinationRemoved,
    DestinationRequest,
    DestinationView,
    EventTypeView,
    NewDestination,
    RotateRequest,
)
from headrace.client.base import BaseClient, path_to
from headrace.model.job import Job


class PublishingApi(BaseClient):
    """A server, for keys of scope admin; reading needs scope read."""

    async def event_types(self) -> Sequence[EventTypeView]:
        """All types of events that programs have declared, with their schemas."""
        return await self._list("/event-types", "event_types", EventTypeView)

    async def destinations(self) -> Sequence[DestinationView]:
        """All destinations, by name, without their secrets."""
        return await self._list("/destinations", "destinations", DestinationView)

    async def destination(self, name: str) -> DestinationView:
        """One destination without its secrets. Raises `UnknownDestination`."""
        return await self._get(_destination(name), DestinationView, "a destination")

    async def put_destination(
        self,
        name: str,
        kind: Any,
        options: Mapping[str, Any],
        *,
        types: Sequence[str] = ("*",),
        secret: str | None = None,
        retries: int = 10,
    ) -> NewDestination:
        """Add a destination, or change the one of this name. The secret of a webhook is in the
        answer where it is new, and never shown again.
        """
        asked = DestinationRequest(
            kind=kind, options=dict(options), types=list(types), secret=secret, retries=retries
        )
        # Not repeated: a secret that was made in a lost answer would be lost.
        return await self._send("PUT", _destination(name), NewDestination, asked)

    async def remove_destination(self, name: str) -> None:
        """Remove a destination. What was not delivered there yet is dropped."""
        await self._send("DELETE", _destination(name), DestinationRemoved, None)

    async def enable_destination(self, name: str, enabled: bool = True) -> DestinationView:
        """Let events go to a destination, or not."""
        path = f"{_destination(name)}/{'enable' if enabled else 'disable'}"
        return await self._send("POST", path, DestinationView, idempotent=True)

    async def rotate_destination(self, name: str, *, finish: bool = False) -> NewDestination:
        """Give a webhook a second secret, which is in the answer; both sign until `finish`."""
        path = f"{_destination(name)}/rotate"
        return await self._send("POST", path, NewDestination, RotateRequest(finish=finish))

    async def test_destination(self, name: str) -> Job:
        """Send a test event to one destination, and return the job that delivers it."""
        return await self._change_job(f"{_destination(name)}/test")


def _destination(name: str) -> str:
    return path_to("destinations", "destination", name)
