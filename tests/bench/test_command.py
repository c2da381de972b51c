"""`headrace bench` measures next to a store, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
import redis

from headrace.cli.bench.store import PREFIX
from headrace.engine.open import open_engine
from headrace.model.job import JobFilter
from tests.conftest import Servers, store_url
from tests.support.verbs import enqueue

ENGINES = ("sqlite", "postgres", "redis")
LIMIT = 60.0


# The root of the command line, which knows its commands by name.
def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace.cli", "bench", *arguments]


def surroundings(url: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADRACE_", "WORKER_")) and name != "API_URL"
    }
    return {**kept, "HEADRACE_URL": url}


def run(url: str, folder: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=surroundings(url),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == code, done
    return done.stdout, done.stderr


def left_behind(url: str, folder: Path) -> Sequence[Any]:
    """Whatever a measurement has made and not removed."""
    if url.startswith("sqlite"):
        return list(folder.glob(f"*{PREFIX}*"))
    server = url.partition("?")[0]
    if url.startswith("redis"):
        with redis.Redis.from_url(server) as client:
            return list(client.scan_iter(match=f"*{PREFIX}*"))

    async def schemas() -> Sequence[Any]:
        connection = await asyncpg.connect(server)
        try:
            return await connection.fetch(
                "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)", PREFIX
            )
        finally:
            await connection.close()

    return asyncio.run(schemas())


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    return store_url(request.param, servers, tmp_path)


def test_it_measures_everything_and_removes_its_store(url: str, tmp_path: Path) -> None:
    out, _ = run(url, tmp_path, "--jobs", "200", "--json")
    found = msgspec.json.decode(out)
    assert found["jobs"] == 200
    # 100 one after the other, then 200 in each of the two other ways.
    assert found["stored"] == 500
    for name in ("enqueue_one", "enqueue_hundred", "enqueue_many", "drain", "latency_p50"):
        assert found[name] > 0
    assert found["latency_p50"] <= found["latency_p99"]
    assert left_behind(url, tmp_path) == []


async def test_it_does_not_touch_jobs(url: str, tmp_path: Path) -> None:
    engine = open_engine(url)
    await engine.open()
    try:
        # A worker that took it would fail it, because nobody knows this task.
        job_id = await enqueue(engine, task="precious")
        await asyncio.to_thread(run, url, tmp_path, "--jobs", "100")
        [job] = (await engine.list_jobs(JobFilter())).jobs
        assert (job.id, job.status.value, job.attempt) == (job_id, "pending", 0)
        assert await engine.workers() == []
    finally:
        await engine.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_removes_its_store_when_it_is_told_to_stop(
    url: str, tmp_path: Path, number: int, code: int
) -> None:
    process = subprocess.Popen(
        command("--jobs", "1000000"),
        cwd=tmp_path,
        env=surroundings(url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: left_behind(url, tmp_path))
        process.send_signal(number)
        assert process.wait(LIMIT) == code
    finally:
        process.kill()
        process.wait(LIMIT)
    assert left_behind(url, tmp_path) == []


def test_people_see_a_table(tmp_path: Path) -> None:
    out, _ = run(f"sqlite:///{tmp_path}/jobs.db", tmp_path, "--jobs", "100")
    assert "enqueue, 100 callers at once" in out
    assert "jobs/s" in out
    assert "With 300 jobs in a store of its own" in out


def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command("--jobs", "300"),
        cwd=tmp_path,
        env={**surroundings(f"sqlite:///{tmp_path}/jobs.db"), "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65_536):
            seen += chunk
    except OSError as error:
        if error.errno != errno.EIO:  # how Linux says that the other side has closed
            raise
    finally:
        os.close(ours)
    assert process.wait(LIMIT) == 0
    assert b"100 callers at once" in seen
    assert b"300/300" in seen
    assert b"Waking an idle worker" in seen


@pytest.mark.parametrize("jobs", ["99", "1000001", "-5"])
def test_the_number_of_jobs_is_bounded(tmp_path: Path, jobs: str) -> None:
    _, error = run(f"sqlite:///{tmp_path}/jobs.db", tmp_path, "--jobs", jobs, code=2)
    assert f"--jobs must be between 100 and 1,000,000, got {jobs}" in error


@pytest.mark.parametrize(
    "url", ["postgresql://postgres:secret@127.0.0.1:1/x", "redis://:secret@127.0.0.1:1/0"]
)
def test_a_server_that_is_away_is_told_in_one_line(tmp_path: Path, url: str) -> None:
    _, error = run(url, tmp_path, code=3)
    assert len(error.splitlines()) == 1
    assert "127.0.0.1:1" in error
    assert "secret" not in error
