"""Tasks whose programs use memory. Importing this does nothing else."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from headrace import App

app = App("sqlite://")
MEBIBYTE = 1_048_576
LIMIT = 200 * MEBIBYTE
PAGE = 4_096

# Fills so many bytes, says so, and stays.
EATER = (
    "import sys, time; b = bytearray(b'x') * int(sys.argv[1]); print(flush=True); time.sleep(600)"
)
# The same in a process that has left its session and its parent.
DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
b = bytearray(b'x') * int(sys.argv[1])
open(sys.argv[2], 'a').write(f'{os.getpid()} ')
time.sleep(600)
"""


def eat(mebibytes: int, **options: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", EATER, str(mebibytes * MEBIBYTE)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload,no-any-return]


@app.task(isolate="process", tree_memory_limit=LIMIT)
def feast(file: str, programs: int, mebibytes: int, seconds: float = 600.0) -> str:
    """Each of them is well below the limit."""
    started = [eat(mebibytes, start_new_session=number % 2 == 1) for number in range(programs)]
    Path(file).write_text("".join(f"{pid} " for pid in (os.getpid(), *(p.pid for p in started))))
    for each in started:
        assert each.stdout is not None
        each.stdout.read(1)
    time.sleep(seconds)
    return "fed"


@app.task(isolate="process", tree_memory_limit=LIMIT)
def escape(file: str, programs: int, mebibytes: int) -> None:
    """All of them leave the session, and their parent has ended."""
    Path(file).write_text(f"{os.getpid()} ")
    for _ in range(programs):
        command = [sys.executable, "-I", "-S", "-c", DAEMON, str(mebibytes * MEBIBYTE), file]
        subprocess.run(command, check=True)
    time.sleep(600)


@app.task(isolate="process", tree_memory_limit=LIMIT)
def alone(mebibytes: int) -> None:
    """The handler itself."""
    _ = bytearray(b"x") * (mebibytes * MEBIBYTE)
    time.sleep(600)


@app.task(isolate="process", tree_memory_limit=LIMIT)
def share(mebibytes: int, copies: int, seconds: float) -> int:
    """Many processes use the same memory: it is there once."""
    shared = mmap.mmap(-1, mebibytes * MEBIBYTE)
    pids = []
    for _ in range(copies):
        pid = os.fork()
        if not pid:
            for place in range(0, len(shared), PAGE):
                shared[place] = 1
            time.sleep(600)
            os._exit(0)
        pids.append(pid)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return copies


@app.task(isolate="process", tree_memory_limit=LIMIT)
def leave(mebibytes: int) -> int:
    """A program is left running."""
    left = eat(mebibytes)
    assert left.stdout is not None
    left.stdout.read(1)
    return left.pid


@app.task(isolate="process", tree_memory_limit=LIMIT)
def modest(mebibytes: int) -> str:
    """Within the limit by itself."""
    _ = bytearray(b"x") * (mebibytes * MEBIBYTE)
    time.sleep(1.0)
    return "modest"


@app.task(isolate="process", tree_memory_limit=MEBIBYTE)
def starved() -> None: ...


@app.task(isolate="process")
def unlimited() -> int:
    return os.getppid()
