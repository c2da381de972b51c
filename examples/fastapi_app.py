"""FastAPI with Headrace: hand in a report, ask for it later.

uvicorn fastapi_app:api
headrace worker --app fastapi_app:jobs
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

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


@api.exception_handler(headrace.InvalidInput)
@api.exception_handler(headrace.JobNotFound)
@api.exception_handler(headrace.EngineUnavailable)
async def refuse(_: Request, error: headrace.HeadraceError) -> JSONResponse:
    match error:
        case headrace.JobNotFound():
            code = 404
        case headrace.EngineUnavailable():
            code = 503
        case _:
            code = 422
    return JSONResponse({"error": str(error)}, code)


@api.post("/reports", status_code=202)
async def order_report(customer_id: int, year: int) -> dict[str, Any]:
    # The key makes the request repeatable: the same report is made once.
    task = make_report.options(key=f"report:{customer_id}:{year}")
    job = await task.enqueue(customer_id=customer_id, year=year)
    return {"job_id": job.id, "status": job.status}


@api.get("/reports/{job_id}")
async def read_report(job_id: str) -> dict[str, Any]:
    job = await jobs.get(job_id)
    return {"status": job.status, "progress": job.progress, "report": job.result}
