"""Jobs, files, a schedule, a workflow and a server, with whatever versions are installed.

Run by test_lowest_versions.py in an environment of its own: it imports nothing from the tests.
"""

import asyncio
import contextlib
import importlib
import pkgutil
import sys

import httpx

import headrace
from headrace.errors import MissingDriver
from headrace.server.listen import listening

app = headrace.App("sqlite:///jobs.db", artifacts="files")


@app.task
async def add(a: int = 1, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@app.task
async def size(ctx: headrace.Context, file: str) -> int:
    """Return how long a file is."""
    return len(await ctx.artifacts.get(file))


flow = app.workflow("flow")
flow.step("only", add, {"a": 1, "b": 2})

PAGES = ("/openapi.json", "/docs", "/metrics", "/summary", "/tasks", "/schedules", "/ui/")


def import_everything() -> None:
    """Import each module whose driver is installed."""
    for module in pkgutil.walk_packages(headrace.__path__, "headrace."):
        if not module.name.startswith("headrace.testing") and "__main__" not in module.name:
            with contextlib.suppress(MissingDriver):
                importlib.import_module(module.name)


def check(answer: httpx.Response, status: int) -> httpx.Response:
    """Return the answer, which has to have this status."""
    if answer.status_code != status:
        raise SystemExit(f"{answer.request.url}: {answer.status_code} {answer.text}")
    return answer


async def main() -> None:
    """Do all of it once."""
    async with app, listening(app, port=0) as url, httpx.AsyncClient(base_url=url) as client:
        made = await client.post("/jobs", json={"task": "add", "args": {"a": 1, "b": 2}})
        job_id = check(made, 202).json()["job_id"]
        file = {"file": ("a.txt", b"abc")}
        sent = check(await client.post("/jobs", data={"task": "size"}, files=file), 202)
        begun = await client.post("/api/v2/workflows/execute", json={"workflow_id": "flow"})
        run = check(begun, 202).json()["data"]["job_id"]
        schedule = {"expression": "0 8 * * MON-FRI", "task": "add"}
        check(await client.put("/schedules/mornings", json=schedule), 200)
        await headrace.JobOrchestrator(app).run_until_idle()
        result = check(await client.get(f"/jobs/{job_id}/result"), 200).json()
        length = check(await client.get(f"/jobs/{sent.json()['job_id']}/result"), 200).json()
        followed = check(await client.get(f"/workflows/runs/{run}"), 200).json()
        found = (result["result"], length["result"], followed["status"])
        if found != (3, 3, "completed"):
            raise SystemExit(f"not what was asked for: {found}")
        for path in PAGES:
            check(await client.get(path), 200)
        check(await client.post("/jobs", json={"task": "add", "args": {"a": "x"}}), 422)
        check(await client.get("/jobs", params={"nope": "1"}), 422)


import_everything()
asyncio.run(main())
sys.stdout.write("it works\n")
