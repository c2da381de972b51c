"""Looking at the jobs that a program has enqueued."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.app import App
from headrace.model.job import Job, JobFilter
from headrace.task import Task
from headrace.task.codec import encode

PAGE = 1_000


async def enqueued(
    app: App, task: Task[..., Any] | str | None = None, /, **arguments: Any
) -> list[Job]:
    """The jobs that were enqueued, oldest first, whatever has become of them.

    Only those of `task`, where one is given; only those with these arguments, others aside.

        [job] = await enqueued(app, send_invoice, customer_id=5)
        assert not await enqueued(app, send_reminder)
    """
    name = task.name if isinstance(task, Task) else task
    wanted = {key: msgspec.json.decode(encode(value)) for key, value in arguments.items()}
    filter = JobFilter(tasks=() if name is None else (name,))
    found: list[Job] = []
    cursor: str | None = None
    while True:
        page = await app.list(filter, cursor=cursor, limit=PAGE)
        found += [job for job in page.jobs if _has(job, wanted)]
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


def _has(job: Job, wanted: dict[str, Any]) -> bool:
    args = job.args
    return all(name in args and args[name] == value for name, value in wanted.items())
