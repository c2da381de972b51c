"""What a Client sends, byte for byte, as an earlier version sent it.

To change the wire on purpose, run this module as a program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import headrace
from headrace import JobFilter, Status
from tests.client.scripted_server import problem, scripted

EXPECTED = Path(__file__).parent / "data" / "wire.json"
JOB = "01a1e76f-ced1-7f66-84ea-54fbf313e3ba"
WHEN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
WANTED = JobFilter(
    statuses=(Status.FAILED,),
    queues=("mail",),
    tasks=("add",),
    lane="l",
    key="k",
    source="api",
    parent=JOB,
    group="g",
    created_after=WHEN,
    created_before=WHEN,
    error_types=("ValueError",),
    worker="w",
    finished_after=WHEN,
    finished_before=WHEN,
)
MARK = "0123456789abcdef"
OPTIONS: dict[str, Any] = {
    "queue": "mail",
    "priority": 3,
    "delay": 1.5,
    "key": "k",
    "lane": "l",
    "retries": 2,
    "timeout": None,
    "meta": {"x": [1]},
}

VERBS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "enqueue": (("add", {"a": 1, "b": "é"}), OPTIONS),
    "enqueue_or_find": (("add",), {"run_at": WHEN, "timeout": 5}),
    "get": ((JOB,), {}),
    "cancel": ((JOB,), {"reason": "enough"}),
    "retry": ((JOB,), {"from_stage": "two"}),
    "signal": ((JOB, "paid/now", {"by": "card"}), {}),
    "why": ((JOB,), {}),
    "entries": ((JOB,), {}),
    "artifacts": ((JOB,), {}),
    "download": ((JOB, "a b/c"), {}),
    "copy": ((JOB, {"a": 2}), {"queue": "mail", "timeout": None}),
    "list": (
        (WANTED,),
        {"cursor": JOB, "limit": 7, "brief": True, "fingerprint": MARK, "search": ["x y", "z"]},
    ),
    "count": ((WANTED,), {"fingerprint": MARK}),
    "bulk": (("cancel", WANTED), {"dry_run": True, "reason": "r", "cutoff": WHEN}),
    "start_bulk": (("retry", WANTED), {"fingerprint": MARK}),
    "bulk_actions": ((), {}),
    "bulk_action": ((JOB,), {}),
    "stop_bulk": ((JOB,), {}),
    "resume_bulk": ((JOB,), {}),
    "running": ((), {}),
    "queues": ((), {}),
    "pause": (("mail",), {}),
    "resume": (("mail",), {}),
    "lanes": ((), {"queue": "mail", "lane": "l"}),
    "workers": ((), {}),
    "metrics": ((), {}),
    "tasks": ((), {}),
    "schedules": ((), {}),
    "schedule": (("n",), {}),
    "put_schedule": (("n", "* * * * *", "add"), {"params": {"a": 1}, "missed": "all"}),
    "remove_schedule": (("n",), {}),
    "enable_schedule": (("n", False), {}),
    "trigger_schedule": (("n",), {"force": True}),
    "next_times": (("n", 3), {}),
    "dispatchers": ((), {}),
    "dead_letters": ((), {"topic": "t", "cursor": "c"}),
    "dead_letter": (("k:t/x:0:1",), {}),
    "replay_dead_letter": (("k:t:0:1",), {}),
    "remove_dead_letter": (("k:t:0:1",), {}),
    "keys": ((), {}),
    "create_key": (("n", "write"), {"user": "u", "queues": ["q"], "rate": 2.0}),
    "revoke_key": (("id",), {}),
    "audit": ((), {"cursor": "c"}),
    "workflows": ((), {}),
    "workflow": (("sums", 2), {}),
    "run_workflow": (("sums", {"a": 1}), {"version": 2, "key": "k"}),
    "follow_run": ((JOB,), {}),
    "retry_run": ((JOB, "two"), {}),
}


async def requests() -> dict[str, list[str]]:
    """What each verb sends."""
    sent: dict[str, list[str]] = {}
    refused = problem(400, "invalid-input", "no")
    async with scripted(refused) as server, headrace.Client(server.url, retries=0) as client:
        for verb, (args, options) in VERBS.items():
            with contextlib.suppress(headrace.HeadraceError):
                await getattr(client, verb)(*args, **options)
            sent[verb] = _told(server.requests.pop())
        jobs = [client.job("add", {"a": 0}), client.job("add", {"a": 1}, key="k")]
        with contextlib.suppress(headrace.HeadraceError):
            await client.enqueue_many(jobs)
        sent["enqueue_many"] = _told(server.requests.pop())
        with contextlib.suppress(headrace.HeadraceError):
            changes: AsyncGenerator[Any, None] = client.events(task="add")
            await anext(changes)
        sent["events"] = _told(server.requests.pop())
    return sent


def _told(request: Any) -> list[str]:
    return [f"{request.method} {request.path}", request.body.decode()]


async def test_requests_are_as_they_were() -> None:
    assert await requests() == json.loads(EXPECTED.read_text())


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps(asyncio.run(requests()), indent=1, ensure_ascii=False) + "\n")
    sys.exit()
