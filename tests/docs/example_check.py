"""Uses one example as its readers would: `python -m tests.docs.example_check NAME`.

Each orders a report over HTTP, lets a worker make it, and reads it. Frameworks are imported by
name: they need not be installed for types to be checked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import headrace

Answer = tuple[int, dict[str, Any]]
Ask = Callable[[str, str], Answer]


def check(ask: Ask, app: headrace.App) -> None:
    status, ordered = ask("POST", "/reports?customer_id=7&year=2030")
    assert status == 202, ordered

    async def work() -> None:
        other = headrace.App(settings=app.settings)
        other.tasks = app.tasks
        async with other:
            await headrace.JobOrchestrator(other).run_until_idle()

    asyncio.run(work())
    status, report = ask("GET", f"/reports/{ordered['job_id']}")
    assert (status, report["status"]) == (200, "completed"), report
    assert report["report"] == {"customer_id": 7, "year": 2030, "total": 1234}
    status, _ = ask("GET", "/reports/01980000-0000-7000-8000-000000000000")
    assert status == 404
    status, _ = ask("GET", "/reports/nonsense")
    assert status in (404, 422)


def fastapi() -> None:
    fastapi_app, testing = import_module("fastapi_app"), import_module("fastapi.testclient")
    with testing.TestClient(fastapi_app.api) as client:

        def ask(method: str, path: str) -> Answer:
            answer = client.request(method, path)
            return answer.status_code, answer.json()

        check(ask, fastapi_app.jobs)


def flask() -> None:
    flask_app = import_module("flask_app")
    client = flask_app.web.test_client()

    def ask(method: str, path: str) -> Answer:
        answer = client.open(path, method=method)
        return answer.status_code, answer.get_json(silent=True) or {}

    check(ask, flask_app.app)
    flask_app.jobs.close()


def django() -> None:
    jobs = import_module("shop.jobs")
    client = import_module("django.test").Client()

    def ask(method: str, path: str) -> Answer:
        answer = client.generic(method, path)
        is_json = answer["Content-Type"] == "application/json"
        return answer.status_code, answer.json() if is_json else {}

    check(ask, jobs.app)
    jobs.jobs.close()


if __name__ == "__main__":
    {"fastapi": fastapi, "flask": flask, "django": django}[sys.argv[1]]()
