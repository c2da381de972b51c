"""Tasks that the tests of isolation run in child processes. Importing this does nothing else."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from headrace import App, Context, NotRetryable, ParserError, RetryLater, Snooze

MEBIBYTE = 1_048_576

app = App("sqlite://")
log = logging.getLogger("handlers")
seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")
calls: list[str] = []


class Point(msgspec.Struct):
    x: int
    y: int


@dataclass
class Size:
    width: float


class Item(BaseModel):
    name: str
    count: int = 1


class BadDocument(NotRetryable):
    """A user's own error below one of ours."""


class Peculiar(Exception):
    """An error whose constructor asks for more than a message."""

    def __init__(self, code: int, *, where: str) -> None:
        super().__init__(code)
        self.where = where

    def __str__(self) -> str:
        return f"peculiar {self.args[0]} in {self.where}"


@app.task(isolate="process")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.task(isolate="process")
async def typed(point: Point, size: Size, item: Item, at: datetime) -> dict[str, Any]:
    kinds = [type(value).__name__ for value in (point, size, item, at)]
    return {"kinds": kinds, "sum": point.x + point.y, "item": item}


@app.task(isolate="process")
def pid() -> int:
    return os.getpid()


@app.task(isolate="process", memory_limit=400 * MEBIBYTE)
def pid_with_a_limit() -> int:
    return os.getpid()


@app.task(isolate="process")
async def about(ctx: Context) -> dict[str, Any]:
    names = ("job_id", "task", "queue", "attempt", "max_attempts", "token", "key", "lane")
    return {name: getattr(ctx, name) for name in (*names, "cancelled")}


@app.task(isolate="process")
async def counted() -> list[Any]:
    """Shows that the module and the loop stay, and that contextvars do not."""
    calls.append("again")
    before = seen.get()
    seen.set("the last job")
    return [len(calls), before, id(asyncio.get_running_loop())]


@app.task(isolate="process")
def fail(kind: str) -> None:  # noqa: PLR0912 - a list of errors
    match kind:
        case "value":
            raise ValueError("not a good value")
        case "parser":
            raise ParserError("page 3 is torn")
        case "own":
            raise BadDocument("no such page")
        case "peculiar":
            raise Peculiar(7, where="the middle")
        case "pydantic":
            Item.model_validate({"name": 5})
        case "key":
            raise KeyError("missing")
        case "exit":
            sys.exit("enough")
        case "cancelled":
            raise asyncio.CancelledError("by itself")
        case "group":
            raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])
        case "cause":
            try:
                Path("/nowhere/at/all").read_text()
            except OSError as error:
                raise RuntimeError("cannot go on") from error
        case "local":

            class Local(LookupError):
                pass

            raise Local("unknown elsewhere")
        case "surrogate":
            raise ValueError("half a character: \ud800")
        case "unicode":
            b"\xff".decode()


@app.task(isolate="process")
async def later() -> None:
    raise RetryLater("the service sleeps", at=datetime(2030, 1, 2, tzinfo=UTC))


@app.task(isolate="process")
def snooze() -> None:
    raise Snooze(90, "not yet")


@app.task(isolate="process")
def unkeepable() -> object:
    return object()


@app.task(isolate="process")
def hang(file: str) -> None:
    """Never ends, also holds the interpreter, and starts a program that never ends either."""
    helper = subprocess.Popen(["sleep", "1000"])
    Path(file).write_text(f"{os.getpid()} {helper.pid}")
    ctypes.PyDLL(None).pause()


@app.task(isolate="process")
async def sleep(file: str) -> None:
    await asyncio.to_thread(Path(file).write_text, f"{os.getpid()}")
    await asyncio.sleep(1000)


@app.task(isolate="process")
def end(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)


@app.task(isolate="process")
def end_after_a_line(file: str) -> None:
    with Path(file).open("a") as lines:
        lines.write("begun\n")
    os._exit(4)


@app.task(isolate="process", memory_limit=200 * MEBIBYTE)
def fill(mebibytes: int) -> int:
    return len(bytearray(mebibytes * MEBIBYTE))


@app.task(isolate="process", memory_limit=MEBIBYTE)
def starved() -> None:
    """A limit that no interpreter can live with."""


@app.task(isolate="process")
def chatty() -> str:
    print("to standard output")
    print("to standard error", file=sys.stderr)
    os.write(1, b"\x00\x01\x02 raw bytes to descriptor 1\n")
    subprocess.run(["echo", "from a program"], check=True)
    return sys.stdin.read()


@app.task(isolate="process")
def large(size: int, text: str = "") -> str:
    return "x" * size + text[:1]


@app.task(isolate="process")
def slow(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@app.task(isolate="process")
async def staged(ctx: Context, fail_at: str | None = None) -> list[Any]:
    async def first() -> Point:
        return Point(1, 2)

    def second(point: Point) -> int:
        if fail_at == "second":
            raise ValueError("the second broke")
        return point.x + point.y

    point = await ctx.stage("first", first, done="firsted")
    total = await ctx.stage("second", second, point)
    return [type(point).__name__, total]


@app.task(isolate="process")
def staged_in_a_function(ctx: Context) -> int:
    return asyncio.run(ctx.stage("only", lambda: 5))


@app.task(isolate="process")
async def staged_at_once(ctx: Context) -> list[int]:
    async def step(number: int) -> int:
        await asyncio.sleep(0.01)
        return number

    return await asyncio.gather(*(ctx.stage(f"step {n}", step, n) for n in range(10)))


@app.task(isolate="process")
async def impatient(ctx: Context) -> str:
    async def endless() -> None:
        await asyncio.sleep(1000)

    try:
        await asyncio.wait_for(ctx.stage("endless", endless), 0.05)
    except TimeoutError:
        return "went on"
    return "never_retry"


@app.task(isolate="process")
async def unkeepable_stage(ctx: Context) -> None:
    await ctx.stage("odd", object)


@app.task(isolate="process")
def progressing(ctx: Context, times: int) -> None:
    for number in range(times):
        ctx.progress(100 * (number + 1) / times, f"at {number + 1}")


@app.task(isolate="process")
def progressing_too_far(ctx: Context) -> None:
    ctx.progress(101)


@app.task(isolate="process")
def logging_things(ctx: Context) -> None:
    ctx.log.info("the job's own: %s", 5)
    ctx.log.debug("not wanted")
    log.warning("the module's own, 100%", extra={"shop": "corner"})
    try:
        int("caught")
    except ValueError:
        log.exception("with a traceback")


@app.task(isolate="process")
async def keeping(ctx: Context) -> list[Any]:
    path = await ctx.artifacts.put("a.bin", b"\x00\xff", layer="bronze", media_type="x/y")
    return [
        path,
        list(await ctx.artifacts.get("a.bin", layer="bronze")),
        [file.path for file in await ctx.artifacts.list()],
    ]


@app.task(isolate="process")
async def sending(ctx: Context, mebibytes: int) -> list[Any]:
    """Send a stream, and tell how much of it was taken, and why no more."""
    taken = 0

    async def made() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(mebibytes):
            taken += 1
            yield bytes(MEBIBYTE)

    try:
        await ctx.artifacts.put("large", made())
    except LookupError as error:
        return [taken, str(error)]
    return [taken, None]


@app.task(isolate="process")
async def stage_given_up_at_once(ctx: Context) -> int:
    """The stage is cancelled while the worker is being asked for it; then it is run."""
    first = asyncio.create_task(ctx.stage("only", lambda: 1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    return await ctx.stage("only", lambda: 2)


@app.task(isolate="process")
async def missing_artifact(ctx: Context) -> None:
    await ctx.artifacts.get("absent")


@app.task(isolate="process")
def until_cancelled(ctx: Context) -> str:
    while not ctx.cancelled:
        time.sleep(0.01)
    return "stopped by itself"


@app.task(isolate="process")
def leave_a_thread_behind(ctx: Context) -> None:
    """Goes on to talk after its job is over."""
    import threading

    def talk() -> None:
        for _ in range(200):
            ctx.progress(99, "from the past")
            ctx.log.info("from the past")
            time.sleep(0.005)

    threading.Thread(target=talk, daemon=True).start()


@app.task(isolate="process")
def fork_and_die(file: str) -> None:
    """A forked process of another session holds the line to the worker open."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    Path(file).write_text(str(pid))
    os._exit(4)


@app.task(isolate="process")
def settings() -> str:
    return app.settings.url


@app.task(isolate="process")
async def enqueues_another() -> str:
    job = await add.enqueue(a=40)
    return job.id
