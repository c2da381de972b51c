"""FastAPI with Headrace: hand in a report, ask for it later.

uvicorn fastapi_app:api
headrace worker --app fastapi_app:jobs
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException

import headrace

jobs = headrace.App()  # reads HEADRACE_URL


@jobs.task(queue="reports", lane="customer:{customer_id}", timeout=300)
async def make_report(ctx: headrace.Context, customer_id: int, year: int) -> dict[str, int]:
    ctx.progress(50, "adding up")
    return {"customer_id": customer_id, "year": year, "total": 1234}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with jobs:  # connects now, so that a wrong URL is seen at the start
        yield


api = FastAPI(lifespan=lifespan)


@api.post("/reports", status_code=202)
async def order_report(customer_id: int, year: int) -> dict[str, Any]:
    # The key makes the request repeatable: the same report is made once.
    task = make_report.options(key=f"report:{customer_id}:{year}")
    job = await task.enqueue(customer_id=customer_id, year=year)
    return {"job_id": job.id, "status": job.status}


@api.get("/reports/{job_id}")
async def read_report(job_id: str) -> dict[str, Any]:
    try:
        job = await jobs.get(job_id)
    except (headrace.JobNotFound, headrace.InvalidInput) as error:
        raise HTTPException(404, str(error)) from error
    return {"status": job.status, "progress": job.progress, "report": job.result}
