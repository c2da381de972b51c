"""The verbs of the command line on a server over HTTP."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime

from headrace.cli.backend import Action, Advance
from headrace.client import Client
from headrace.model.job import JobFilter

_ATTEMPTS = re.compile(r"headrace_attempts_total\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


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

    async def outcomes(self) -> Mapping[str, Mapping[str, int]]:
        """From the metrics, which tell what all workers have counted."""
        found: dict[str, dict[str, int]] = defaultdict(Counter)
        for line in (await self.client.metrics()).splitlines():
            if told := _ATTEMPTS.match(line):
                labels = dict(_LABEL.findall(told[1]))
                found[labels["worker"]][labels["outcome"]] += int(float(told[2]))
        return found
