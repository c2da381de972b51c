"""A program that used a bucket ends with its own exit code."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest

from tests.artifacts.conftest import Objects, sign_in

# More programs at once than there are cores, so that threads of the S3 client are kept waiting.
TOGETHER = 8
ROUNDS = 3

PROGRAM = """
import asyncio
import sys

from headrace.artifacts import open_store


async def main() -> None:
    store = open_store(sys.argv[1])
    path = f"gold/01980000-0000-7000-8000-000000000000/1/{sys.argv[2]}.bin"
    await store.put(path, b"x" * 1000)
    await store.get(path)


asyncio.run(main())
"""


def test_no_thread_of_the_client_aborts_the_end_of_a_program(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = objects.get()
    sign_in(server, monkeypatch)
    setting = server.artifacts(f"t{uuid4().hex[:12]}/run")
    codes = []
    for _ in range(ROUNDS):
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, setting, str(number)], stderr=subprocess.PIPE
            )
            for number in range(TOGETHER)
        ]
        for program in programs:
            _, err = program.communicate(timeout=60)
            codes.append((program.returncode, err.decode()[-500:]))
    assert codes == [(0, "")] * TOGETHER * ROUNDS
