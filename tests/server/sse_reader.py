"""Server-sent events as a browser reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import httpx


class Event:
    """One event."""

    def __init__(self, kind: str, data: str, identity: str | None) -> None:
        self.kind = kind
        self.job: dict[str, Any] = json.loads(data)
        self.id = identity

    @property
    def status(self) -> str:
        status: str = self.job["status"]
        return status


class Stream:
    """Collects the events of one stream in the background."""

    def __init__(self, client: httpx.AsyncClient, path: str, **headers: str) -> None:
        self.events: list[Event] = []
        self.comments: list[str] = []
        self.last_id: str | None = None
        self.response: httpx.Response | None = None
        self._client = client
        self._path = path
        self._headers = headers
        self._open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read())
        opened = asyncio.create_task(self._open.wait())
        await asyncio.wait({self._task, opened}, timeout=30, return_when="FIRST_COMPLETED")
        opened.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    async def ended(self) -> None:
        """Wait until the server has ended it."""
        assert self._task is not None
        await asyncio.wait_for(self._task, 30)

    @property
    def over(self) -> bool:
        return self._task is not None and self._task.done()

    def statuses(self, job_id: str | None = None) -> list[str]:
        """The statuses that a job has had, without repetitions."""
        found: list[str] = []
        for event in self.events:
            wanted = event.kind == "job" and job_id in (None, event.job["job_id"])
            if wanted and found[-1:] != [event.status]:
                found.append(event.status)
        return found

    async def _read(self) -> None:
        async with self._client.stream("GET", self._path, headers=self._headers) as response:
            self.response = response
            async for event in self._parse(response):
                self.events.append(event)

    async def _parse(self, response: httpx.Response) -> AsyncIterator[Event]:
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
                    self.last_id = value if name == "id" else self.last_id
                else:
                    self.comments.append(value)
                    self._open.set()
            else:
                if "data" in fields:
                    yield Event(fields.get("event", "message"), fields["data"], fields.get("id"))
                fields = {}
                self._open.set()
