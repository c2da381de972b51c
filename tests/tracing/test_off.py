"""While traces are off nothing of OpenTelemetry is imported, and a job takes the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import MissingDriver
from headrace.tracing import find_tracing, wanted
from tests.support.processes import ROOT

PROGRAM = """
import asyncio, json, sys
import headrace

app = headrace.App(sys.argv[1])

@app.task
async def touch(ctx: headrace.Context) -> None:
    seen["context"] = type(ctx).__name__
    await ctx.stage("count", str, 1)

seen = {}

async def main():
    async with app:
        job = await touch.enqueue()
        worker = headrace.JobOrchestrator(app)
        async with worker:
            await app.result(job.id, 30)
            seen["executor"] = type(worker._runtime.executor).__name__
        seen["enqueuer"] = type(app._enqueuer).__name__
        seen["meta"] = (await app.get(job.id)).meta_json
    seen["tracing"] = sorted(n for n in sys.modules if n.startswith("headrace.tracing."))
    seen["otel"] = sorted(n for n in sys.modules if n.startswith("opentelemetry"))

asyncio.run(main())
print(json.dumps(seen))
"""


def ran(folder: Path, **environment: str) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"sqlite:///{folder}/jobs.db"],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_off_nothing_is_imported_and_the_way_is_the_same(tmp_path: Path) -> None:
    seen = ran(tmp_path)
    assert seen["otel"] == []
    assert "headrace.tracing.tracer" not in seen["tracing"]
    assert "headrace.tracing.set_up" not in seen["tracing"]
    assert (seen["executor"], seen["enqueuer"]) == ("Executor", "Enqueuer")
    assert (seen["context"], seen["meta"]) == ("JobContext", None)


def test_variables_turn_them_on(tmp_path: Path) -> None:
    # Nobody listens there, which is no trouble of the job's.
    seen = ran(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert "opentelemetry.trace" in seen["otel"]
    # The program has set up no provider, so nothing is exported by it.
    assert "opentelemetry.sdk.trace" not in seen["otel"]
    assert (seen["executor"], seen["enqueuer"]) == ("ObservedExecutor", "TracedEnqueuer")
    assert seen["context"] == "ObservedContext"


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, False, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True, False),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
            False,
            True,
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "True"},
            False,
            False,
        ),
        ({"OTEL_SERVICE_NAME": "shop"}, False, False),
    ],
)
def test_the_standard_variables_decide(
    variables: dict[str, str], traces: bool, metrics: bool
) -> None:
    assert (wanted("traces", variables), wanted("metrics", variables)) == (traces, metrics)


def test_what_has_to_be_on_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.tracing._shared", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    monkeypatch.delitem(sys.modules, "headrace.tracing.tracer", raising=False)
    with pytest.raises(MissingDriver, match=r'pip install "headrace\[otel\]"'):
        find_tracing("on")
    # Machines have such variables for other programs.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert find_tracing("auto") is None
