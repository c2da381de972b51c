"""A large file goes through in bounded memory, in both directions, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.artifacts import tasks
from tests.artifacts.tasks import MEBIBYTE
from tests.orchestrator.conftest import Worker, worker

__all__ = ["worker"]

SIZE = 192
# Parts that are on their way to a bucket, and the next that is being collected, are in memory.
ALLOWED = 80 * MEBIBYTE

PROGRAM = """
import asyncio, json, sys
from headrace.artifacts import open_store, place
from headrace.model.ids import new_id
from tests.artifacts.tasks import MEBIBYTE, peak

async def main(setting, mebibytes):
    store = open_store(setting)
    await store.put(place("bronze", new_id(), 1, "warm"), b"x" * 10)

    async def made():
        for number in range(mebibytes):
            yield bytes([number % 256]) * MEBIBYTE

    before = peak()
    path = place("bronze", new_id(), 1, "large")
    stored = await store.put(path, made())
    written = peak() - before
    read = 0
    async for chunk in store.stream(path, sha256=stored.sha256):
        read += len(chunk)
    await store.remove(path)
    print(json.dumps([stored.size, read, written, peak() - before]))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def test_a_large_stream_takes_little_memory(setting: str) -> None:
    root = Path(__file__).parents[2]
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM, setting, str(SIZE)],
        check=True,
        capture_output=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
        timeout=100,
    )
    size, read, written, overall = json.loads(run.stdout)
    assert size == read == SIZE * MEBIBYTE
    assert written < ALLOWED
    assert overall < ALLOWED


async def test_a_child_hands_over_a_large_file_in_chunks(
    setting: str, tmp_path: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    tasks.app.reconfigure(headrace.Settings(url=url, artifacts=setting))
    async with tasks.app as app:
        job = await tasks.large_in_a_process.enqueue(mebibytes=64)
        await worker(app).run_until_idle()
        over = await app.get(job.id)
        assert over.result is not None, over.error
        more, _ = over.result
        assert more < 24 * MEBIBYTE
        [entry] = await app.engine.entries(job.id, "artifact")
        assert json.loads(entry.body)["size"] == 64 * MEBIBYTE
