"""The JSON of every answer and every schema, as an earlier version wrote it.

The file beside this one was written by the server as it was before requests and answers were
defined once for server and client. To change the wire on purpose, run this module as a program.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

import headrace
import headrace.server
from headrace.dispatchers.heartbeat import KIND as DISPATCHER
from tests.server.conftest import a_key, client_of, make_app, run_jobs
from tests.server.test_guard import ROUTES
from tests.server.test_schedules_and_dead_letters import NIGHTLY, set_aside

EXPECTED = Path(__file__).parent / "data" / "wire.json"
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+\d\d:\d\d")
# What the document says of these is for people, and depends on the tasks.
LOOSE = ("JobRequest", "JobUpload", "ScheduleRequest", "ExecuteRequest")


def shape(value: Any) -> Any:
    """The names in a JSON value, in their order, and the kind of each value."""
    match value:
        case dict():
            return {name: shape(each) for name, each in value.items()}
        case list():
            return [shape(each) for each in value[:2]]
        case str() if UTC_TIME.fullmatch(value):
            return "time in UTC"
        case str() if LOCAL_TIME.fullmatch(value):
            return "local time"
        case _:
            return type(value).__name__


async def answers(app: headrace.App) -> dict[str, Any]:
    """Ask for everything once, and tell the shapes of the answers."""
    found: dict[str, Any] = {}
    key = await a_key(app, rate=100_000)
    async with client_of(app, key) as client:

        async def ask(name: str, method: str, path: str, body: Any = None) -> Any:
            answer: httpx.Response = await client.request(method, path, json=body)
            found[name] = [answer.status_code, shape(answer.json())]
            return answer.json()

        scan = {"platform": "x", "document": {"title": "t"}}
        job = await ask("POST /jobs", "POST", "/jobs", {"task": "scan", "args": scan, "key": "k"})
        path = f"/jobs/{job['job_id']}"
        lane = {"task": "speak", "args": {"user_id": "u"}, "delay": 60, "meta": {"x": 1}}
        await ask("POST /jobs/batch", "POST", "/jobs/batch", {"jobs": [lane, lane | {"key": "k"}]})
        await ask("GET /lanes", "GET", "/lanes")
        await ask("why", "GET", f"{path}/why")
        await ask("not yet", "GET", f"{path}/result")
        begun = await ask(
            "execute",
            "POST",
            "/api/v2/workflows/execute",
            {"workflow_id": "sums", "params": {"a": 1}},
        )
        await client.post("/jobs", json={"task": "broken"})
        await run_jobs(app)
        for name in ("", "/result", "/entries", "/artifacts"):
            await ask(f"GET /jobs/{{job_id}}{name}", "GET", path + name)
        run = f"/workflows/runs/{begun['data']['job_id']}"
        await ask("run", "GET", run)
        await ask("retry run", "POST", f"{run}/retry", {"from": "end"})
        await ask("retry", "POST", f"{path}/retry")
        await ask("signal", "POST", f"{path}/events/paid", {"by": "card"})
        await ask("running", "GET", "/api/v2/jobs/running")
        await ask("cancel", "POST", f"{path}/cancel", {"reason": "enough"})
        bulk = {"action": "retry", "filter": {"task": ["scan"], "status": ["cancelled"]}}
        await ask("bulk", "POST", "/jobs/bulk", bulk)
        for name in ("jobs", "queues", "tasks", "workflows", "workflows/sums", "healthz", "readyz"):
            await ask(f"GET /{name}", "GET", f"/{name}")
        await ask("pause", "POST", "/queues/default/pause")
        await ask("rate", "PUT", "/queues/default/rate", {"rate": "10/m"})
        await ask("hold", "PUT", "/queues/default/hold?lane=x", {"for": 60, "reason": "r"})
        await ask("GET /rates", "GET", "/rates")
        await ask("put schedule", "PUT", "/schedules/nightly", NIGHTLY)
        await ask("trigger", "POST", "/schedules/nightly/trigger")
        for name in ("schedules", "schedules/nightly", "schedules/nightly/next"):
            await ask(f"GET /{name}", "GET", f"/{name}")
        await ask("remove schedule", "DELETE", "/schedules/nightly")
        await app.engine.record_put(DISPATCHER, "kafka-1", REPORT)
        await ask("GET /dispatchers", "GET", "/dispatchers")
        await set_aside(app, 2)
        letters = await ask("GET /dead-letters", "GET", "/dead-letters?limit=1")
        letter = f"/dead-letters/{letters['dead_letters'][0]['id']}"
        await ask("letter", "GET", letter)
        await ask("no replay", "POST", f"{letter}/replay")
        await ask("remove letter", "DELETE", letter)
        made = await ask("new key", "POST", "/keys", {"name": "n", "queues": ["q"], "user": "u"})
        await ask("revoked", "DELETE", f"/keys/{made['id']}")
        await ask("GET /keys", "GET", "/keys")
        await ask("GET /audit", "GET", "/audit?limit=2")
        await ask("nothing", "GET", "/nothing")
    return found


REPORT = (
    b'{"type":"queue","adapter":"kafka","host":"h","pid":1,"healthy":true,"stored":5,'
    b'"set_aside":1,"lag":null}'
)


def schemas(app: headrace.App) -> dict[str, Any]:
    """The schemas in the document without words for people, those of tasks aside."""
    made = json.loads(json.dumps(headrace.server.create(app).openapi()))
    return {
        name: _bare(schema)
        for name, schema in sorted(made["components"]["schemas"].items())
        if name.partition("_")[0] not in LOOSE
    }


def _bare(part: Any) -> Any:
    match part:
        case {"properties": dict(properties), **others}:
            bare = {name: _bare(each) for name, each in properties.items()}
            return _bare(others) | {"properties": bare}
        case dict():
            return {
                name: _bare(each)
                for name, each in part.items()
                if name not in ("description", "title")
            }
        case list():
            return [_bare(each) for each in part]
        case _:
            return part


async def test_answers_are_as_they_were(local_app: headrace.App) -> None:
    expected = json.loads(EXPECTED.read_text())["answers"]
    found = await answers(local_app)
    for name, told in expected.items():
        assert (name, json.dumps(found[name])) == (name, json.dumps(told))
    assert found.keys() == expected.keys()


async def test_schemas_are_as_they_were(local_app: headrace.App) -> None:
    expected = json.loads(EXPECTED.read_text())["schemas"]
    found = schemas(local_app)
    for name, schema in expected.items():
        assert (name, found[name]) == (name, schema)
    assert found.keys() == expected.keys()


def test_routes_are_as_they_were() -> None:
    expected = json.loads(EXPECTED.read_text())["routes"]
    assert [list(route) for route in ROUTES] == expected


async def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/jobs.db"
        async with make_app(url, Path(folder)) as app:
            wire = {"routes": ROUTES, "schemas": schemas(app), "answers": await answers(app)}
    EXPECTED.write_text(json.dumps(wire, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(asyncio.run(_write()))
