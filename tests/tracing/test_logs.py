"""Logs as JSON: one object a line, whatever is in it, with the job that it is about."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.cli.services.logs import _JsonFormat
from tests.support.processes import Processes
from tests.tracing.logging_program import app as logging_app


def formatted(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    line = _JsonFormat().format(record)
    found: dict[str, Any] = json.loads(line)
    return line, found


def a_record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord("shop", logging.ERROR, __file__, 1, message, args, None)
    vars(record).update(extra)
    return record


def test_no_control_character_is_left_raw() -> None:
    wild = "".join(map(chr, range(0x20))) + "\x7f\x9b\u2028\u202e\ud800 end"
    line, found = formatted(a_record("%s", wild, job_id=wild, task="\x1b[2J"))
    assert all(character.isprintable() for character in line)
    assert found["message"].endswith(" end")
    assert "\\x1b" in found["task"]
    # Line breaks are part of what was said, and escaped by JSON alone.
    assert "\n" in found["message"]


def test_it_tells_what_is_known_and_no_more() -> None:
    _, found = formatted(a_record("hello", password="hunter2"))
    assert found.keys() == {"time", "level", "logger", "message"}
    assert found["level"] == "ERROR"
    assert found["time"].endswith("Z")
    extra = {
        "job_id": "j",
        "task": "t",
        "queue": "q",
        "attempt": 2,
        "trace_id": "a",
        "span_id": "b",
    }
    _, found = formatted(a_record("hello", **extra))
    assert found | {"job": "j", "task": "t", "queue": "q", "attempt": 2} == found
    assert (found["trace_id"], found["span_id"]) == ("a", "b")


def refuse() -> None:
    raise ValueError("no \x1b[31mway")


def test_an_exception_is_one_text() -> None:
    record = a_record("it broke")
    try:
        refuse()
    except ValueError:
        record.exc_info = sys.exc_info()
    line, found = formatted(record)
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: no \\x1b[31mway")
    assert "\n" not in line


@pytest.mark.parametrize("by", ["option", "variable"])
async def test_a_worker_logs_json(tmp_path: Path, by: str) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with headrace.App(url) as app:
        jobs = {}
        for name in ("plain", "broken"):
            task = logging_app.tasks[name]
            made = task.job("correct horse battery")
            jobs[name] = (await app.enqueue_job(made)).id
    options, variables = ["--log-format", "json"], {"HEADRACE_LOG_FORMAT": "json"}
    with Processes(tmp_path) as programs:
        worker = programs.headrace(
            *("worker", "--app", "tests.tracing.logging_program", "--url", url, "--exit-when-idle"),
            *(options if by == "option" else []),
            **(variables if by == "variable" else {}),
        )
        assert await worker.ended(90) == 0, worker.said
    lines = [json.loads(line) for line in worker.said.splitlines()]
    [own] = [line for line in lines if line["logger"] == "shop"]
    # A plain function in a thread, which says nothing of its job.
    expected = {"job": jobs["plain"], "task": "plain", "queue": "default", "attempt": 1}
    assert own | expected == own
    assert "trace_id" not in own
    [failed] = [line for line in lines if line["level"] == "ERROR"]
    assert failed["job"] == jobs["broken"]
    assert "[redacted]" in failed["message"]
    assert "battery" not in worker.said
