"""Real programs for tests: started, watched, stopped, killed, and always cleaned up."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")

# A machine that is busy with other tests is slow, not wrong.
LIMIT = 60.0
HEADRACE = Path(sys.executable).parent / "headrace"
ROOT = Path(__file__).parent.parent.parent


@overload
async def until(
    condition: Callable[[], Awaitable[T]], what: str = ..., limit: float = ...
) -> T: ...
@overload
async def until(condition: Callable[[], T], what: str = ..., limit: float = ...) -> T: ...
async def until(condition: Callable[[], Any], what: str = "it", limit: float = LIMIT) -> Any:
    """Wait until a condition holds, and answer what it answered."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not happen within {limit:g} s"
        await asyncio.sleep(0.01)


class Process:
    """One program. Signals go to its pid alone."""

    def __init__(
        self,
        command: list[str],
        *,
        folder: Path,
        environment: dict[str, str],
        own_session: bool = False,
    ) -> None:
        self.output = folder / f"output-{time.monotonic_ns()}.txt"
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=own_session,
            )
        self.pid = self._process.pid
        self.killed_at: float | None = None

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """All that it has written so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it without warning and wait until it is gone."""
        self._process.kill()
        self._process.wait(LIMIT)
        self.killed_at = time.monotonic()

    def freeze(self) -> None:
        """Stop it as a machine that hangs would."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to stop."""
        self._process.send_signal(signal.SIGTERM)

    async def ended(self, limit: float = LIMIT) -> int:
        """Wait until it has ended, and answer its exit code."""
        await until(lambda: self.code is not None, f"the end of process {self.pid}", limit)
        assert self.code is not None
        return self.code

    def destroy(self) -> None:
        """Make sure that it is gone, also if it is stopped."""
        if self.code is None:
            self.kill()


class Processes:
    """Starts programs with a clean environment, and ends those that are left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            process.destroy()

    def headrace(self, *arguments: str, **environment: str) -> Process:
        """Start the command line, as people do."""
        # Ours without any setting that a developer may have.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_"))
        }
        path = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
        process = Process(
            [str(HEADRACE), *arguments],
            folder=self.folder,
            environment=kept | {"PYTHONPATH": path} | environment,
        )
        self.started.append(process)
        return process
