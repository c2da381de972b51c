"""What `headrace up` runs beside its worker: further workers, the HTTP server, schedules."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from headrace.app import App
from headrace.cli.errors import notice
from headrace.config import Settings
from headrace.errors import InvalidSetting
from headrace.loops.free_memory import keep_what_is_loaded
from headrace.loops.sockets import OFF


class WorkerProcesses:
    """Workers that stop when their standard input closes, so that none outlives its parent."""

    def __init__(self, app: App, *, count: int, queues: Sequence[str] = ()) -> None:
        self._app = app
        self._queues = ["--queues", ",".join(queues)] if queues else []
        self._count = count
        self._ended = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        settings = self._app.settings
        # The URL goes by the environment, because everybody can read a command line.
        bundles = ["--bundle", ",".join(settings.bundles)] if settings.bundles else []
        environment = os.environ | {
            "HEADRACE_URL": settings.url,
            "HEADRACE_STORES": ",".join(f"{name}={url}" for name, url in settings.stores.items()),
            "HEADRACE_LOG_FORMAT": settings.log_format,
        }
        for _ in range(self._count):
            self._processes.append(
                subprocess.Popen(  # noqa: S603 - ourselves, with no input of anybody's
                    [
                        *(sys.executable, "-m", "headrace.cli", "worker"),
                        *("--app", settings.app or "", "--quiet", "--stop-with-stdin"),
                        # One port is for one process: `up` answers for all of them.
                        *("--probes", OFF),
                        *self._queues,
                        *bundles,
                    ],
                    stdin=subprocess.PIPE,
                    env=environment,
                    # Ctrl-C is for us: we stop them, once.
                    process_group=0,
                )
            )

    @property
    def trouble(self) -> str | None:
        """Return which of them have ended by themselves; None if all are there."""
        ended = self._ended + sum(process.poll() is not None for process in self._processes)
        return f"{ended} of {self._count} further worker processes have ended" if ended else None

    def check(self) -> None:
        """Report processes that have ended by themselves."""
        for process in list(self._processes):
            if process.poll() is not None:
                notice(f"error: worker process {process.pid} ended with code {process.returncode}")
                self._processes.remove(process)
                self._ended += 1

    async def stop(self) -> None:
        """Let them finish; end those that take far longer than the grace time.

        A call may be cancelled; the next one goes on waiting for those that are left.
        """
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        limit = time.monotonic() + self._app.settings.grace_seconds + 15
        while self._processes:
            process = self._processes[0]
            try:
                await asyncio.to_thread(process.wait, max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)
            if process in self._processes:  # not if two wait at once
                self._processes.remove(process)


class UpServices(msgspec.Struct, kw_only=True):
    """What runs beside the worker: the address of the API, if it is served, and why not if not."""

    address: str | None = None
    notes: list[str] = []


@contextlib.asynccontextmanager
async def run_services(app: App, *, server: bool, any_port: bool) -> AsyncIterator[UpServices]:
    """Serve the API and fire schedules meanwhile. With `any_port` another port will do if the one
    of the settings is taken.

    Both need an extra; without it they are left out, and the worker works all the same.
    """
    services = UpServices()
    async with contextlib.AsyncExitStack() as stack:
        await _cron(app, stack, services)
        if server:
            await _server(app, stack, services, any_port=any_port)
            keep_what_is_loaded()
        yield services


async def _server(
    app: App, stack: contextlib.AsyncExitStack, services: UpServices, *, any_port: bool
) -> None:
    try:
        from headrace.server.listen import listening  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        services.notes.append(
            f"no dashboard and no HTTP API without {error.name}; install them: "
            'pip install "headrace[server]"'
        )
        return
    try:
        services.address = await stack.enter_async_context(listening(app))
    except InvalidSetting as error:
        if not any_port or app.settings.port != Settings().port:
            raise
        # Nobody asked for this very port, and a second `up` should not fail because of the first.
        services.address = await stack.enter_async_context(listening(app, port=0))
        services.notes.append(f"{error}; so another port is used")


async def _cron(app: App, stack: contextlib.AsyncExitStack, services: UpServices) -> None:
    try:
        from headrace.dispatchers.cron.dispatcher import cron_dispatcher  # noqa: PLC0415 - the extra
    except ModuleNotFoundError as error:
        services.notes.append(
            f'no schedules without {error.name}; install it: pip install "headrace[cron]"'
        )
        return
    dispatcher = cron_dispatcher(app)
    await dispatcher.sync()
    dispatcher.start()
    stack.push_async_callback(dispatcher.stop)
