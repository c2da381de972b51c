"""The command line as people run it: a real process, a folder of its own, a real store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from tests.conftest import Servers
from tests.support.verbs import the_job

T = TypeVar("T")

HEADRACE = str(Path(sys.executable).parent / "headrace")
LIMIT = 30.0

SHOP = '''
import asyncio
import time
from pathlib import Path

import headrace

app = headrace.App()
not_an_app = 3


@app.task("invoice.send", lane="customer:{customer_id}")
async def send(ctx: headrace.Context, customer_id: int, note: str = "") -> dict[str, int]:
    return {"sent": customer_id}


@app.task("invoice.break", retries=0)
async def broken(reason: str = "no reason") -> None:
    raise RuntimeError(reason)


@app.task("slow")
async def slow(ctx: headrace.Context, seconds: float = 60.0) -> str:
    ctx.progress(10, "sleeping")
    end = time.monotonic() + seconds
    while time.monotonic() < end and not Path("wake").exists():
        await asyncio.sleep(0.02)
    return "slept"


@app.task("deaf", timeout=None)
def deaf(seconds: float = 60.0) -> None:
    """Does not listen when it is told to stop."""
    time.sleep(seconds)
'''


class Ran:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


class Cli:
    """Runs `headrace` in a folder, on one store."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.started: list[subprocess.Popen[str]] = []

    def environment(self, **changes: str) -> dict[str, str]:
        """Ours without any setting that a developer may have, and with the store."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_"))
            # Unbuffered, Python takes half a write for a whole one when the reader has gone.
            and name not in ("API_URL", "PYTHONUNBUFFERED")
        }
        return kept | {"HEADRACE_URL": self.url} | changes

    def __call__(self, *arguments: str, stdin: str = "", code: int = 0, **changes: str) -> Ran:
        """Run a command to its end and check its exit code."""
        done = subprocess.run(
            [HEADRACE, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env=self.environment(**changes),
            timeout=LIMIT,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert ran.code == code, ran
        assert "Traceback" not in ran.err, ran
        return ran

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        """Start a command that stays; the fixture ends it if the test did not."""
        process = subprocess.Popen(
            [HEADRACE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env=self.environment(**changes),
        )
        self.started.append(process)
        return process

    def wake(self) -> None:
        """Let jobs that are slow end."""
        (self.folder / "wake").touch()

    def enqueue(self, task: str, *arguments: str) -> str:
        """Hand in a job of the shop and answer its id."""
        return self("enqueue", task, *arguments, "--app", "shop").out.strip()

    def status(self, job_id: str) -> str:
        """A job's status, read past the command line: tests ask for it again and again."""

        async def read(engine: Engine) -> str:
            return (await the_job(engine, job_id)).status.value

        return self.read(read)

    def workers(self) -> int:
        """How many workers there are."""

        async def read(engine: Engine) -> int:
            return len(await engine.workers())

        return self.read(read)

    def read(self, look: Callable[[Engine], Coroutine[None, None, T]]) -> T:
        """Look into the store."""

        async def opened() -> T:
            engine = open_engine(self.url)
            await engine.open()
            try:
                return await look(engine)
            finally:
                await engine.close()

        return asyncio.run(opened())

    def drain(self) -> None:
        """Run everything that waits."""
        self("worker", "--app", "shop", "--exit-when-idle")


def wait_for(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    """Wait until something is so."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def cli(folder: Path) -> Iterator[Cli]:
    """The command line on a new SQLite store."""
    yield from _running(Cli(folder, f"sqlite:///{folder}/jobs.db"))


@pytest.fixture(params=["postgres", "redis"])
def server_cli(request: pytest.FixtureRequest, servers: Servers, folder: Path) -> Iterator[Cli]:
    """The command line on a new store on a server."""
    name: str = request.param
    space = f"t{uuid4().hex[:12]}"
    parameter = "schema" if name == "postgres" else "namespace"
    yield from _running(Cli(folder, f"{servers.url(name)}?{parameter}={space}"))


def _running(cli: Cli) -> Iterator[Cli]:
    yield cli
    for process in cli.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
