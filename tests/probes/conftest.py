"""Asking processes how they are."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import Process, until

TIMEOUT = 30.0


class Asked(NamedTuple):
    """What was answered."""

    status: int
    body: bytes
    content_type: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        reason: str = self.json.get("reason", "")
        return reason


def ask(url: str, *, method: str = "GET", timeout: float = TIMEOUT) -> Asked:
    """Ask once, over a connection of its own, as probes do."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return Asked(answer.status, answer.read(), answer.headers["Content-Type"])
    except urllib.error.HTTPError as refused:
        with refused:
            return Asked(refused.code, refused.read(), refused.headers["Content-Type"])


def samples_of(text: bytes) -> dict[str, float]:
    """Every series with its value, read by the library of Prometheus."""
    return {
        f"{sample.name}{dict(sorted(sample.labels.items()))}": sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


async def probes_of(process: Process) -> str:
    """Where a process answers, as soon as it does."""

    def told() -> str | None:
        found = re.search(r"Probes at (\S+)/healthz", process.said)
        assert found or process.code is None, process.said
        return found and found.group(1)

    return await until(told, "the start of the probes") or ""
