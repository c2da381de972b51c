"""The verbs of the command line on a server over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace.cli.verbs import Action, Advance
from headrace.client import Client
from headrace.model.job import JobFilter


class Remote:
    """The verbs on a server. What the server decides is decided there: limits, rights, names."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.get = client.get
        self.list = client.list
        self.result = client.result
        self.why = client.why
        self.cancel = client.cancel
        self.retry = client.retry
        self.signal = client.signal
        self.entries = client.entries
        self.queues = client.queues
        self.pause = client.pause
        self.resume = client.resume
        self.lanes = client.lanes
        self.workers = client.workers

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def count(self, action: Action, wanted: JobFilter) -> int:
        return (await self.client.bulk(action, wanted, dry_run=True)).matched

    async def change(
        self, action: Action, wanted: JobFilter, reason: str | None, advance: Advance
    ) -> int:
        answer = await self.client.bulk(action, wanted, reason=reason)
        advance(answer.matched)
        return answer.changed

    async def running(self) -> dict[str, Any]:
        shown: dict[str, Any] = msgspec.to_builtins(await self.client.running())
        return shown
