"""What type checkers know of the blocking classes."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.support.sync_stubs import ALL, SHARED, Blocking, stub

SOURCE = Path(inspect.getfile(headrace)).parent

PROGRAM = """
from collections.abc import Iterator, Sequence

import headrace.sync
from headrace import Job
from headrace.client import ScheduleView, SyncClient, sync

jobs = headrace.sync.App("sqlite://")


@jobs.task(queue="mail")
def send(to: str, copies: int = 1) -> int:
    return copies


job: Job = jobs.enqueue(send.job(to="ada"))
stored: Sequence[Job] = jobs.enqueue_many(send.job(to="ada", copies=n) for n in range(3))
page: list[Job] = jobs.list(limit=5).jobs
text: str = jobs.get(job.id).task
with headrace.sync.wrap(jobs.app) as again:
    reasons: Sequence[str] = again.why(job.id)

with SyncClient("http://127.0.0.1:1") as client:
    made, new = client.enqueue_or_find("send", {"to": "ada"}, key="k")
    changes: Iterator[Job] = client.events(made.id)
    schedules: Sequence[ScheduleView] = client.schedules()
    chunks: Iterator[bytes] = client.stream(made.id, "file")
other: SyncClient = sync.Client()
"""

WRONG = """
import headrace.sync
from headrace.client import SyncClient

jobs = headrace.sync.App("sqlite://")
number: int = jobs.get("x").task  # E: str
jobs.retry("x", "stage")  # E: from_stage is by name
jobs.nothing()  # E: no such verb
client = SyncClient()
client.enqueue("send", {"to": "ada"}, priority="high")  # E: a number
for change in client.events(1):  # E: a text
    change.nothing()  # E: no such attribute
"""


@pytest.mark.parametrize("blocking", ALL, ids=lambda each: each.kind)
def test_stubs_are_current(blocking: Blocking) -> None:
    assert blocking.stub.read_text() == stub(blocking), "run python -m tests.support.sync_stubs"


@pytest.mark.parametrize("blocking", ALL, ids=lambda each: each.kind)
def test_stubs_have_the_methods_that_exist_at_run_time(blocking: Blocking) -> None:
    kind, text = getattr(blocking.module, blocking.kind), blocking.stub.read_text()
    # The base class that both have stands in the last stub.
    base = ALL[-1].stub.read_text().partition(f"class {SHARED}")[2].partition("\nclass ")[0]
    inherited = {name for each in blocking.inherits for name in vars(each)}
    assert f"class {blocking.kind}({SHARED}" in text
    text = text.partition(f"class {blocking.kind}")[2] + base
    for name, verb in inspect.getmembers(kind, inspect.isfunction):
        assert name.startswith("_") or name in inherited or f"def {name}(" in text
        assert not inspect.iscoroutinefunction(verb) or name.startswith("_")


def check(folder: Path, program: str, *options: str, package: Path = SOURCE) -> str:
    """What mypy says of a user's program."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *options, "program.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(package.parent), "MYPY_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_program_is_checked_against_the_stubs(tmp_path: Path) -> None:
    assert check(tmp_path, PROGRAM, "--strict") == ""
    found = check(tmp_path, WRONG, "--strict")
    lines = {int(line.split(":")[1]) for line in found.splitlines() if " error: " in line}
    expected = {n for n, line in enumerate(WRONG.splitlines(), 1) if "# E: " in line}
    assert lines == expected, found


def test_a_program_can_be_checked_where_the_stubs_are_missing(tmp_path: Path) -> None:
    package = tmp_path / "copy" / "headrace"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.pyi", "__pycache__"))
    assert check(tmp_path, PROGRAM, package=package) == ""
