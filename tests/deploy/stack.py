"""Runs the services of the Compose file as plain processes of this machine.

Everything comes from the file: commands, environment, limits, health checks, stop times and what
has to be there first. Only what containers have of their own is mapped: host names and ports to
ports of loopback, folders to a temporary one, the store to a server of the suite.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]

from tests.deploy.files import API, PROBES, compose, in_bytes, in_seconds, ours
from tests.support.processes import ROOT, Process, Processes
from tests.support.servers import free_port

HEADRACE = Path(sys.executable).parent / "headrace"
ARTIFACTS = "/var/lib/headrace/artifacts"
DATABASE = "postgresql://headrace@postgres:5432/headrace"
# A machine on which many tests run at once is slower than a server.
PATIENCE = 4
# The image has Chromium. Three of them would slow all other tests down.
BROWSER = "lightpanda"


class Stack:
    """The services of the file, on this machine."""

    def __init__(
        self, folder: Path, *, store: str, database: str, change: Callable[[dict[str, str]], None]
    ) -> None:
        self.folder = folder
        self.processes = Processes(folder)
        self.content = compose(HEADRACE_URL=store)
        self.services = ours(self.content)
        self.probes = {name: free_port() for name in self.services}
        self.api = free_port()
        self.running: dict[str, Process] = {}
        self._database = database
        self._change = change
        (folder / "artifacts").mkdir()

    def mapped(self, name: str, value: Any) -> Any:
        """A part of a service with its addresses as they are here."""
        port = self.probes.get(name, 0)
        places = {
            DATABASE: self._database,
            ARTIFACTS: str(self.folder / "artifacts"),
            f"0.0.0.0:{PROBES}": f"127.0.0.1:{port}",
            f"127.0.0.1:{PROBES}": f"127.0.0.1:{port}",
            **{f"{service}:{PROBES}": f"127.0.0.1:{at}" for service, at in self.probes.items()},
            f"server:{API}": f"127.0.0.1:{self.api}",
        }
        if isinstance(value, dict):
            return {key: self.mapped(name, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.mapped(name, each) for each in value]
        for there, here in places.items() if isinstance(value, str) else ():
            value = value.replace(there, here)
        return value

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a service, and nothing of a developer's."""
        kept = {
            variable: value
            for variable, value in os.environ.items()
            if not variable.startswith(("HEADRACE_", "WORKER_", "PG"))
        }
        path = os.pathsep.join([str(self.folder), str(ROOT)])
        own: dict[str, str] = self.mapped(name, self.content["services"][name]["environment"])
        self._change(own)
        return kept | {"PYTHONPATH": path} | own

    def start(self, name: str, *arguments: str) -> Process:
        """Start a service, or another command in its container."""
        command = list(arguments or self.content["services"][name]["command"])
        assert command[0] == "headrace"
        if "0.0.0.0" in command:
            # The only command that has its address in options.
            command = [{"0.0.0.0": "127.0.0.1", API: str(self.api)}.get(e, e) for e in command]
        process = Process(
            [str(HEADRACE), *command[1:]], folder=self.folder, environment=self.environment(name)
        )
        self.processes.started.append(process)
        return process

    async def run(self, name: str, *arguments: str) -> str:
        """Start it and wait for its end; what it wrote."""
        process = self.start(name, *arguments)
        code = await process.ended(60 * PATIENCE)
        assert code == 0, process.said
        return process.said

    async def prepare(self) -> None:
        """Run what has to end well before the others start. The stores run already."""
        needed = {
            name
            for service in self.services.values()
            for name, about in service["depends_on"].items()
            if about["condition"] == "service_completed_successfully"
        }
        for name in needed:
            await self.run(name)

    async def up(self) -> None:
        """Start all, and wait until their health checks succeed."""
        for name in self.services:
            self.running[name] = self.start(name)
        await asyncio.gather(*(self.healthy(name) for name in self.services))

    async def healthy(self, name: str) -> None:
        """Run the health check of a service until it succeeds, for as long as the file allows."""
        check = self.services[name]["healthcheck"]
        interval, limit = in_seconds(check["interval"]), in_seconds(check["start_period"])
        limit += interval * check["retries"]
        end = time.monotonic() + limit * PATIENCE
        # The program of the check costs more than a look whether anybody listens.
        while not (await self.listens(name) and await self.check(name)):
            process = self.running[name]
            assert process.code is None, f"{name} has ended: {process.said}"
            assert time.monotonic() < end, f"{name} is not healthy: {process.said}"
            # More often than there, or the test would only wait.
            await asyncio.sleep(interval / 20)

    async def listens(self, name: str) -> bool:
        """Whether the port of the probes of a service is open."""
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.probes[name])
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def check(self, name: str) -> bool:
        """The health check of a service, once."""
        kind, program, *arguments = self.services[name]["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", *self.mapped(name, arguments), stdout=-3, stderr=-3
        )
        return await process.wait() == 0

    async def down(self) -> dict[str, int]:
        """Stop all at once; their exit codes. Each has to end within its stop time."""
        for process in self.running.values():
            process.terminate()
        codes = {}
        for name, process in self.running.items():
            limit = in_seconds(self.services[name]["stop_grace_period"])
            codes[name] = await process.ended(limit)
        return codes


class Watch:
    """Looks at what the services need again and again, while a block runs."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.looks = 0
        self.above: set[str] = set()
        """Those that needed more memory or threads than the file gives them."""
        self.browsers: set[str] = set()
        """Those that were seen with a browser."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(0.1)

    def _look(self) -> None:
        for name, process in self._stack.running.items():
            service = self._stack.services[name]
            memory = threads = 0
            for each in tree(process.pid):
                with contextlib.suppress(psutil.Error):
                    memory += each.memory_info().rss
                    threads += each.num_threads()
                    if BROWSER in each.name():
                        self.browsers.add(name)
            if memory > in_bytes(service["mem_limit"]):
                self.above.add(f"{name}: more memory than {service['mem_limit']}")
            if threads > service["pids_limit"]:
                self.above.add(f"{name}: more threads than {service['pids_limit']}")
        self.looks += 1


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
