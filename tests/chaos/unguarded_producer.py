"""A producer with one of its guards switched off, which `CHAOS_GUARD` names."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from types import SimpleNamespace
from typing import Any

import headrace
from chaos import producer
from headrace.model.job import NewJob

guard = os.environ.get("CHAOS_GUARD", "")
enqueue_job = headrace.App.enqueue_job


async def enqueue_out_of_lane(app: headrace.App, job: NewJob, **more: Any) -> Any:
    """Ask for the job as if it had no lane."""
    job.lane = None
    return await enqueue_job(app, job, **more)


async def enqueue_out_of_order(app: headrace.App, job: NewJob, **more: Any) -> Any:
    """Some jobs are asked for as if they had time."""
    job.delay = random.choice([0.0, 1.0])
    return await enqueue_job(app, job, **more)


async def acknowledge_first(app: headrace.App, job: NewJob, **more: Any) -> Any:
    """Say that a job is stored, whether it is or not."""
    with contextlib.suppress(headrace.HeadraceError):
        await enqueue_job(app, job, **more)
    return SimpleNamespace(id=job.id)


match guard:
    case "lane":
        setattr(headrace.App, "enqueue_job", enqueue_out_of_lane)  # noqa: B010
    case "order":
        setattr(headrace.App, "enqueue_job", enqueue_out_of_order)  # noqa: B010
    case "acknowledge":
        setattr(headrace.App, "enqueue_job", acknowledge_first)  # noqa: B010
    case "token" | "refusal":
        # Attempts that are long enough to be taken over.
        setattr(producer, "LONG", 0.5)  # noqa: B010

if __name__ == "__main__":
    asyncio.run(producer.main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
