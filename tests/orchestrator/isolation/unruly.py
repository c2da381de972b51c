"""Tasks that fork, scribble, and leave things behind. Importing this does nothing else."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from headrace import App, Context

app = App("sqlite://")
log = logging.getLogger("unruly")
left: list[object] = []


@app.task(isolate="process")
def add(a: int) -> int:
    return a + 2


@app.task(isolate="process")
def rest(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@app.task(isolate="process")
def invoice(number: int, fork: str = "") -> str:
    """A copy of this process goes on by itself: a program that is not there, or a plain return."""
    if fork and os.fork() == 0:
        if fork == "exec":
            os.execv("/no/such/program", ["program"])
        return f"copy of invoice {number}"
    return f"invoice {number}"


@app.task(isolate="process")
async def async_invoice(number: int, fork: str = "") -> str:
    async def program() -> None:
        if fork and os.fork() == 0:
            if fork == "exec":
                os.execv("/no/such/program", ["program"])
            return
        await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        group.create_task(program())
    return f"invoice {number}"


@app.task(isolate="process")
def forked_copy_talks(ctx: Context) -> list[str]:
    """What a copy gets to hear when it uses what belongs to the process of the job."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = "nothing"
        try:
            log.warning("the copy logs")
            ctx.progress(50, "from the copy")
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as answers:
        return [answers.read()]


@app.task(isolate="process")
def leave_a_copy_that_talks(file: str) -> None:
    """The libraries of a handler fork below Python, where nothing tells it."""
    if ctypes.PyDLL(None).fork() == 0:
        while not Path(file).exists():
            time.sleep(0.01)
        raise ValueError("from the copy")


@app.task(isolate="process")
async def leave_a_task_that_exits() -> None:
    async def leave() -> None:
        await asyncio.sleep(0.1)
        sys.exit("by an earlier job")

    left.append(asyncio.create_task(leave()))


@app.task(isolate="process")
def leave_an_alarm() -> None:
    def ring(*_: object) -> None:
        raise TimeoutError("of an earlier job")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)


@app.task(isolate="process")
def fork_and_exit(code: int) -> int:
    """A copy that leaves in good order."""
    pid = os.fork()
    if pid == 0:
        sys.exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@app.task(isolate="process")
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@app.task(isolate="process")
def scribble(announced: int) -> None:
    """Writes to every socket it finds, as a stray descriptor number would."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.write(int(name), announced.to_bytes(4, "little") + b"x" * 1000)
        except OSError:
            continue
    time.sleep(1000)


@app.task(isolate="process")
async def stage_of(ctx: Context, size: int) -> int:
    return len(await ctx.stage("large", lambda: "x" * size))


@app.task(isolate="process")
async def hear(ctx: Context, size: int) -> int:
    return len(await ctx.wait("large"))


@app.task(isolate="process")
def orphans(count: int) -> int:
    """Programs that lose their parent and end."""
    for _ in range(count):
        subprocess.run(["/bin/sh", "-c", "sleep 0.01 &"], check=True)
    return os.getppid()


@app.task(isolate="process")
def grow(file: str, then: str = "") -> None:
    """Starts programs in all ways to get away, writes their numbers down, and hangs or dies."""
    plain = subprocess.Popen(["sleep", "1000"])
    session = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    daemon = subprocess.run(
        ["/bin/sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!"], capture_output=True, check=True
    )
    bare = subprocess.Popen(["/bin/sleep", "1000"], env={}, start_new_session=True)
    pids = (os.getpid(), os.getppid(), plain.pid, session.pid, int(daemon.stdout), bare.pid)
    Path(file).write_text(" ".join(map(str, pids)))
    match then:
        case "return":
            return
        case "exit":
            os._exit(3)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
