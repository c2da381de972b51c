"""Flask with Headrace: hand in a report, ask for it later.

flask --app flask_app:web run
headrace worker --app flask_app:app
"""

from __future__ import annotations

from typing import Any

from flask import Flask, abort, request

import headrace
import headrace.sync

jobs = headrace.sync.App()  # reads HEADRACE_URL
app = jobs.app  # what the worker loads


@jobs.task(queue="reports", lane="customer:{customer_id}", timeout=300)
def make_report(customer_id: int, year: int) -> dict[str, int]:
    return {"customer_id": customer_id, "year": year, "total": 1234}


web = Flask(__name__)


@web.post("/reports")
def order_report() -> tuple[dict[str, Any], int]:
    customer_id, year = int(request.args["customer_id"]), int(request.args["year"])
    # The key makes the request repeatable: the same report is made once.
    task = make_report.options(key=f"report:{customer_id}:{year}")
    job = jobs.enqueue(task.job(customer_id=customer_id, year=year))
    return {"job_id": job.id, "status": job.status}, 202


@web.get("/reports/<job_id>")
def read_report(job_id: str) -> dict[str, Any]:
    try:
        job = jobs.get(job_id)
    except (headrace.JobNotFound, headrace.InvalidInput) as error:
        abort(404, str(error))
    return {"status": job.status, "progress": job.progress, "report": job.result}
